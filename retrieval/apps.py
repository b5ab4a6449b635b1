"""The app of the corpus, embeddings and search."""

from importlib import import_module

from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    """Django's configuration of this app."""

    name = "retrieval"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register this app's job handlers."""
        import_module("retrieval.job_handlers")
