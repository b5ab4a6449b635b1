"""The app of users and of workers' heartbeats."""

import logging
import os

from django.apps import AppConfig

logger = logging.getLogger(__name__)


class AnnotatorConfig(AppConfig):
    """Django's configuration of the project's own models."""

    name = "annotator"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the worker's signals, register how workers are counted and the job of backups,
        name misspelled variables in the log, and begin traces.
        """
        from annotator.backup.job import BACKUP_JOB, backup_step
        from annotator.manage.settings_in_force import misspelled_variables
        from annotator.processes.worker import live_workers
        from core.jobs.kinds import count_workers_by, job_handler

        for name, meant in misspelled_variables().items():
            logger.warning(
                "The variable %s is set, and nothing reads it. Is %s meant?", name, meant
            )
        count_workers_by(live_workers)
        job_handler(BACKUP_JOB)(backup_step)
        if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
            from annotator.tracing import start_tracing

            start_tracing()
