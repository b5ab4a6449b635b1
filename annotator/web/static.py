"""Static files under names with their content's hash, and Vega's script from a library."""

from importlib.metadata import version
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import BaseStorageFinder
from django.core.files.storage import FileSystemStorage
from django.utils.functional import LazyObject
from whitenoise.storage import CompressedManifestStaticFilesStorage

from annotator.processes.broker import write_whole


class StaticFilesStorage(CompressedManifestStaticFilesStorage):
    """WhiteNoise's storage, which answers plain names as long as nothing was collected.

    So pages render in tests and checks without a `collectstatic` before them. Modules import each
    other by their lasting names too.
    """

    support_js_module_import_aggregation = True
    max_post_process_passes = 10

    def stored_name(self, name: str) -> str:
        """The hashed name of a static file, or `name` itself before the first collection."""
        return super().stored_name(name) if self.hashed_files else name

    def url(self, name: str | None, force: bool = False) -> Any:
        """The address of a static file."""
        if name and not self.hashed_files:
            return self.base_url + name
        return super().url(name, force)


class _VegaStorage(LazyObject):
    """The folder of `js/vega.mjs`, which is made on first use."""

    def _setup(self) -> None:
        import vl_convert

        folder = settings.VAR_DIR / "vega" / version("vl-convert-python")
        script = folder / "js" / "vega.mjs"
        if not script.exists():
            script.parent.mkdir(parents=True, exist_ok=True)
            write_whole(script, vl_convert.javascript_bundle())  # type: ignore[call-arg]
        self._wrapped = FileSystemStorage(location=folder)


class VegaFinder(BaseStorageFinder):
    """Finds `js/vega.mjs`: Vega, Vega-Lite and Vega-Embed as one script that sets
    `window.vegaEmbed`; vl-convert carries it."""

    def __init__(self) -> None:
        # Django's own asks what kind of storage it is, which would make the script.
        self.storage = _VegaStorage()  # type: ignore[assignment]
