"""How gunicorn serves the pages and the API. `serve` and the container image both use it."""

import gc
import os
import shutil
import tempfile
from typing import Any

from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
# A web process loads no model.
os.environ.setdefault("TEXT_PROCESS", "true")
if settings.DATABASE_POOL:
    settings.DATABASES["default"] = settings.DATABASE_POOL
# Where the workers' counts of requests come together; they begin at 0 with each start. In memory
# where the system has a folder there: these files are mapped, so a full disk would kill a worker.
metrics = tempfile.mkdtemp(
    prefix="inquire-metrics-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None
)
os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics

wsgi_app = "annotator.wsgi:application"
# A wrong setting ends gunicorn here, before its workers would each fail.
bind = f"{settings.BIND}:{settings.PORT}"
worker_class = "annotator.processes.web_worker.WaitressWorker"
workers = settings.WEB_PROCESSES
threads = 4
# Workers share the memory of what is imported, and another one begins at once.
preload_app = True
timeout = 120
graceful_timeout = 8
control_socket_disable = True
# Requests are logged by the application, without their addresses.
logconfig_dict = settings.LOGGING


def when_ready(_server: Any) -> None:
    """Keep what was imported out of garbage collections: each stopped all threads of a process."""
    gc.freeze()


def on_exit(_server: Any) -> None:
    """Leave no counts behind."""
    shutil.rmtree(metrics, ignore_errors=True)
