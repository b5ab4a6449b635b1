"""A machine that reads along, and is held to people."""

from __future__ import annotations

from django.apps import AppConfig


class ReadingConfig(AppConfig):
    """Registers the job, the pages and where readings help."""

    name = "extras.reading"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Append to the registries."""
