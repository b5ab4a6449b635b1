"""The Django project: settings, addresses, the Celery application and the embedded services."""

from annotator.celery import app as celery_app

__all__ = ["celery_app"]
