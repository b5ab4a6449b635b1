"""How gunicorn serves the pages and the API. `serve` and the container image both use it."""

from annotator.environment import Environment

_env = Environment()

wsgi_app = "annotator.wsgi:application"
bind = f"{_env.text('BIND', '127.0.0.1')}:{_env.number('PORT', 8000, minimum=1, maximum=65535)}"
worker_class = "gthread"
workers = 2
threads = 4
timeout = 120
graceful_timeout = 8
keepalive = 5
control_socket_disable = True
# Whether the request came by HTTPS is Django's to judge (TRUST_PROXY).
forwarded_allow_ips = ""
