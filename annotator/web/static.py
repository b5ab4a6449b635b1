"""Static files under names with their content's hash, and Vega's script from a library."""

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import BaseStorageFinder, get_finders
from django.core.files.storage import FileSystemStorage
from django.core.management import call_command
from django.utils.functional import LazyObject
from whitenoise.storage import CompressedManifestStaticFilesStorage

from core.files import whole_file

UNUSED = ["rest_framework", "jquery.js", "select2.full.js", "xregexp.js"]
"""No page needs these, and half of the time went into them: the API has no pages of its own, and
Django's admin takes the short forms of its libraries.
"""


def collect() -> None:
    """Collect the static files, unless these very files were collected before: compressing them
    takes seconds.
    """
    digest = hashlib.sha256(f"{version('Django')} {version('whitenoise')}".encode())
    for finder in get_finders():
        for path, storage in finder.list(UNUSED):
            with storage.open(path) as source:
                digest.update(f"{path}\0{source.size}\0".encode() + source.read())
    collected = Path(settings.STATIC_ROOT) / "collected.txt"
    if not collected.exists() or collected.read_text() != digest.hexdigest():
        # What is collected in part is that of neither.
        collected.unlink(missing_ok=True)
        call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=UNUSED)
        with whole_file(collected) as file:
            file.write(digest.hexdigest().encode())


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


class _VegaStorage(LazyObject):  # type: ignore[type-arg]
    """The folder of `js/vega.mjs`, which is made on first use."""

    def _setup(self) -> None:
        import vl_convert

        folder = settings.VAR_DIR / "vega" / version("vl-convert-python")
        script = folder / "js" / "vega.mjs"
        if not script.exists():
            with whole_file(script) as file:
                file.write(vl_convert.javascript_bundle().encode())  # type: ignore[call-arg]
        self._wrapped = FileSystemStorage(location=folder)


class VegaFinder(BaseStorageFinder):
    """Finds `js/vega.mjs`: Vega, Vega-Lite and Vega-Embed as one script that sets
    `window.vegaEmbed`; vl-convert carries it."""

    def __init__(self) -> None:
        # Django's own asks what kind of storage it is, which would make the script.
        self.storage = _VegaStorage()  # type: ignore[assignment]
