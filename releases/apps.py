"""The application that makes releases."""

from django.apps import AppConfig


class ReleasesConfig(AppConfig):
    """Django's configuration of releases."""

    name = "releases"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the kinds of long work that this app does."""
        from releases import job_handlers  # noqa: F401
