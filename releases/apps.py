"""The application that makes releases."""

from django.apps import AppConfig

from core.registries import DATASET_PANELS, IMAGE_PANELS, IMAGE_USES, LATER_STEPS, ImageUse


class ReleasesConfig(AppConfig):
    """Django's configuration of releases."""

    name = "releases"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the kinds of long work that this app does, its first steps, its cards on an
        image's page and a data set's, and that releases name images.
        """
        from releases import job_handlers  # noqa: F401
        from releases.first_steps import STEPS
        from releases.selectors import releases_name
        from releases.views import dataset_panel, image_panel

        LATER_STEPS.extend(STEPS)
        IMAGE_PANELS.append(image_panel)
        DATASET_PANELS.append(dataset_panel)
        IMAGE_USES.append(ImageUse("releases", releases_name))
