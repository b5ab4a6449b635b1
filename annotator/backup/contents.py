"""The files that the database names: those of releases, of runs, of the species task and of copied
images.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from django.conf import settings

from annotator.environment import MODEL_FILE
from benchmark.releases.models import Release
from benchmark.runs.models import Run
from benchmark.species.models import SpeciesRun
from retrieval.corpus.models import Image
from retrieval.images.storage import stored_paths

FOLDERS: Final = ("releases", "runs", "species_runs", "images")
"""The folders below VAR_DIR in which they lie."""


def named_files(*, images: bool) -> Iterator[tuple[Path, str]]:
    """Each file with the SHA-256 that its name promises, or "".

    Small ones first, which may be deleted while the others are read. Where a file must exist it is
    named whether or not it does; call it within one transaction.
    """
    var_dir = Path(settings.VAR_DIR)
    if (var_dir / MODEL_FILE).is_file():
        yield var_dir / MODEL_FILE, ""
    for run in Run.objects.order_by("pk").iterator():
        # The random order is none that is stored.
        if run.sha256:
            yield run.path, run.sha256
        if run.upload.exists():
            yield run.upload, ""
    for species_run in SpeciesRun.objects.order_by("pk"):
        if species_run.done:
            yield species_run.path, ""
    for release in Release.objects.made().order_by("pk"):
        archives = [release.archive, release.archive.get("open")]
        for entry in filter(None, [*release.file_list, *archives]):
            yield release.directory / entry["name"], entry["sha256"]
    if images:
        copied = Image.objects.filter(root=None, takedown=None).order_by("sha256").distinct()
        for sha256 in copied.values_list("sha256", flat=True).iterator():
            source, *derived = stored_paths(sha256)
            yield source, sha256
            yield from ((path, "") for path in derived if path.exists())
