"""Configuration of the labeling app."""

from importlib import import_module

from django.apps import AppConfig

from core.registries import IMAGE_PANELS, IMAGE_USES


class LabelingConfig(AppConfig):
    """The labeling app."""

    name = "labeling"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register this app's job handlers, its card on an image's page, what names images, and
        what is done for queries with selected images.
        """
        from labeling.images.actions import ACTIONS
        from labeling.images.uses import USES
        from labeling.images.views import image_panel
        from retrieval.browsing.actions import IMAGE_ACTIONS

        import_module("labeling.job_handlers")
        IMAGE_PANELS.append(image_panel)
        IMAGE_USES.extend(USES)
        IMAGE_ACTIONS.extend(ACTIONS)
