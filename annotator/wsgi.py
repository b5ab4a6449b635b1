"""The WSGI application for the web server."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")

application = get_wsgi_application()
# Here, before the workers begin, instead of in their first requests: views are imported, and the
# parameters that they take are found.
from annotator.web.openapi import prepare_query_parameters  # noqa: E402

prepare_query_parameters()
