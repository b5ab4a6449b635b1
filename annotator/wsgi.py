"""The WSGI application for the web server."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")

application = get_wsgi_application()
# Views are imported here, before the workers begin, instead of by their first requests.
get_resolver().url_patterns  # noqa: B018
