"""The Celery application. Its messages only say "look at job N": the database holds the work."""

import os

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")

TRANSPORT_ALIASES["files"] = "annotator.broker:Transport"

app = Celery("annotator")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["core.jobs"])
