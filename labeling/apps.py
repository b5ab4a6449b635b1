"""Configuration of the labeling app."""

from importlib import import_module

from django.apps import AppConfig


class LabelingConfig(AppConfig):
    """The labeling app."""

    name = "labeling"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register this app's job handlers."""
        import_module("labeling.job_handlers")
