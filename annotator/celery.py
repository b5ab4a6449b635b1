"""The Celery application. Its messages only say "look at job N": the database holds the work."""

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
# A worker's own run of Django's checks would import all pages, and take three times the memory.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")

TRANSPORT_ALIASES["files"] = "annotator.processes.broker:Transport"

app = Celery("annotator")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["core.jobs"])


@setup_logging.connect
def _logging_is_set_up(**_: Any) -> None:
    """Keep Celery from setting its own level: LOG_LEVEL holds for workers too."""
