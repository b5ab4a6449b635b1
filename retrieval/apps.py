"""The app of the corpus, embeddings and search."""

from importlib import import_module

from django.apps import AppConfig

from core.registries import IMAGE_USES, ImageUse

TAKEDOWNS = "takedowns (their records tell imports which files never to bring back)"


class RetrievalConfig(AppConfig):
    """Django's configuration of this app."""

    name = "retrieval"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register this app's job handlers, and that takedowns name images: their tombstones tell
        imports which files never to bring back.
        """
        from retrieval.corpus.models import ImageTakedown
        from retrieval.removal.selectors import rows_name

        import_module("retrieval.job_handlers")
        IMAGE_USES.append(ImageUse(TAKEDOWNS, rows_name(ImageTakedown)))
