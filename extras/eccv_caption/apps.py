"""ECCV Caption as a benchmark that `import_benchmark` takes."""

from django.apps import AppConfig


class EccvCaptionConfig(AppConfig):
    """Registers the layout of its files."""

    name = "extras.eccv_caption"

    def ready(self) -> None:
        """Append to the registries."""
        from extras.eccv_caption.eccv_files import is_eccv, read_eccv
        from releases.importing.layout_files import LAYOUTS

        LAYOUTS.append((is_eccv, read_eccv))
