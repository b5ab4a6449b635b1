"""The app of users and of workers' heartbeats."""

import os

from django.apps import AppConfig


class AnnotatorConfig(AppConfig):
    """Django's configuration of the project's own models."""

    name = "annotator"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the worker's signals, register how workers are counted, and begin traces."""
        from annotator.processes.worker import live_workers
        from core.jobs.kinds import count_workers_by

        count_workers_by(live_workers)
        if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
            from annotator.tracing import start_tracing

            start_tracing()
