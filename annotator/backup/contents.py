"""The files that the database names: those of releases, runs, extras and copied images."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from annotator.environment import MODEL_FILE
from core.registries import BACKUP_FOLDERS
from core.storage import is_shared
from evaluation.runs.models import Run
from releases.models import Release
from retrieval.corpus.models import Image
from retrieval.images.storage import stored_paths


def folders() -> list[str]:
    """The folders below VAR_DIR in which they lie."""
    return ["releases", "runs", *(one.name for one in BACKUP_FOLDERS), "images"]


class Named(NamedTuple):
    """A file that the database names."""

    path: Path
    sha256: str = ""
    """What the database promises, or empty."""
    needed: bool = True
    """Whether it is missed where it isn't there."""


def named_files(*, images: bool) -> Iterator[Named]:
    """Each file that there is or may be. Small ones first, which may be deleted while the others
    are read; call it within one transaction.
    """
    # One machine's own choice, where several share the files.
    if not is_shared():
        yield Named(Path(settings.VAR_DIR) / MODEL_FILE, needed=False)
    for run in Run.objects.order_by("pk").iterator():
        # The random order is none that is stored.
        if run.sha256:
            yield Named(run.path, run.sha256)
        else:
            yield Named(run.upload, needed=False)
    for folder in BACKUP_FOLDERS:
        yield from map(Named, folder.files())
    for release in Release.objects.made().order_by("pk"):
        archives = [release.archive, release.archive.get("open")]
        for entry in filter(None, [*release.file_list, *archives]):
            yield Named(release.directory / entry["name"], entry["sha256"])
    if images:
        copied = Image.objects.filter(root=None, takedown=None).order_by("sha256").distinct()
        for sha256 in copied.values_list("sha256", flat=True).iterator():
            source, *derived = stored_paths(sha256)
            yield Named(source, sha256)
            yield from (Named(path, needed=False) for path in derived)
