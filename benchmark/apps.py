"""The application that holds releases and scores runs."""

from django.apps import AppConfig


class BenchmarkConfig(AppConfig):
    """Django's configuration of releases."""

    name = "benchmark"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the kinds of long work that this app does."""
        from benchmark import job_handlers  # noqa: F401
