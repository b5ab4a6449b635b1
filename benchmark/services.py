"""Making releases: the files, and the rows that say what they are."""

from __future__ import annotations

import hashlib
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from benchmark import selectors
from benchmark.directories import atomic_directory
from benchmark.models import Release
from benchmark.release_files import (
    ANNOTATIONS_FILE,
    JUDGMENTS_FILE,
    QUERY_FILES,
    RELEASE_FILES,
    write_annotations,
    write_judgments,
)
from labeling.query_csv import write_queries
from retrieval.models import Job
from retrieval.services.jobs import job_advance, job_create, job_retry

JOB_KIND = "export_release"


class ReleaseUnusable(Exception):
    """A release's files can't be given out; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of each file of a release, without the headers."""

    val_queries: int
    test_queries: int
    positives: int
    judgments: int


@transaction.atomic
def release_create(*, name: str, created_by: Any) -> Release:
    """Begin a release: the row, and the job that makes it.

    A release of that name whose making failed or was cut short is taken up again. Raises
    ValidationError, with the field named, for a name that is blank, too long or holds control
    characters, or that a release already has.
    """
    release = _release_claim(name, created_by)
    if release.job is None or not job_retry(job=release.job):
        title = f"Release {release.name}"
        release.job = job_create(
            kind=JOB_KIND, params={"release": release.pk}, created_by=created_by, title=title
        )
        release.save(update_fields=["job"])
    return release


def release_export(*, name: str, directory: Path, replace: bool = False) -> tuple[Release, bool]:
    """Write the release of that name to `directory`; tells whether it was made just now.

    A name without a release makes one, without a job; else the files of the release are copied as
    they were made, since a release never changes. Raises ValidationError for an impossible name,
    `directories.TargetRefused` for an impossible directory and ReleaseUnusable for lost or damaged
    files.
    """
    with atomic_directory(directory, replace=replace, replaceable=RELEASE_FILES) as partial:
        release = Release.objects.filter(name=name.strip(), made_at__isnull=False).first()
        made = release is None
        if release is None:
            with transaction.atomic():
                claimed = _release_claim(name, None)
            release = release_make(release=claimed)
        _copy(release, partial)
    return release, made


def release_make(*, release: Release, job: Job | None = None) -> Release:
    """Write a release's files and record them; one that is made already is left as it is.

    Files, row and the job's progress are one transaction that sees one moment of the database and
    holds the row, so that of two makers one waits. Killed at any moment, it leaves nothing that
    doing it again doesn't replace.
    """
    with selectors.snapshot():
        release = Release.objects.select_for_update().get(pk=release.pk)
        if not release.files_ready:
            _release_fill(release)
        if job is not None:
            job_advance(job=job, done=1 - job.done, total=1)
    release.refresh_from_db()
    return release


def _release_fill(release: Release) -> None:
    for leftover in release.directory.parent.glob(f".{release.pk}.partial-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    # Replacing: a maker that was killed before its commit may have left a whole directory.
    with atomic_directory(release.directory, replace=True, replaceable=RELEASE_FILES) as partial:
        counts = _files_write(partial)
        files = [_file_entry(partial / name) for name in RELEASE_FILES]
    Release.objects.filter(pk=release.pk).update(
        made_at=Now(),
        file_list=files,
        val_queries=counts.val_queries,
        test_queries=counts.test_queries,
        positives=counts.positives,
        judgments=counts.judgments,
    )


def _files_write(directory: Path) -> Counts:
    """Write the files of a release; equal states of the database give equal bytes."""
    with ExitStack() as stack:

        def opened(name: str) -> TextIO:
            path = directory / name
            return stack.enter_context(path.open("w", encoding="utf-8", newline=""))

        query_files = {split: opened(name) for split, name in QUERY_FILES.items()}
        queries = write_queries(selectors.released_queries(), query_files)
        positives = write_annotations(selectors.released_annotations(), opened(ANNOTATIONS_FILE))
        judgments = write_judgments(selectors.released_judgments(), opened(JUDGMENTS_FILE))
    return Counts(
        val_queries=queries["val"],
        test_queries=queries["test"],
        positives=positives,
        judgments=judgments,
    )


def _release_claim(name: str, created_by: Any) -> Release:
    """The locked row of a release that is still to be made, new or left over from a failure."""
    name = name.strip()
    if not name.isprintable():
        raise ValidationError({"name": "The name holds characters that can't be printed."})
    existing = Release.objects.select_for_update(of=("self",)).filter(name=name).first()
    if existing is None:
        return _release_insert(name, created_by)
    if existing.files_ready:
        raise ValidationError(
            {"name": f"A release {name!r} exists and never changes; choose another name."}
        )
    if existing.job is not None and existing.job.state in Job.UNFINISHED:
        raise ValidationError({"name": f"A release {name!r} is already being made."})
    return existing


def _release_insert(name: str, created_by: Any) -> Release:
    release = Release(name=name, created_by=created_by)
    release.full_clean(validate_unique=False)
    try:
        with transaction.atomic():
            release.save()
    except IntegrityError:
        # Another request took the name at this moment.
        message = f"A release {name!r} is already being made."
        raise ValidationError({"name": message}) from None
    return release


def _copy(release: Release, directory: Path) -> None:
    """Copy a release's files, refusing any that is not what was made."""
    for entry in release.file_list:
        source = release.directory / entry["name"]
        try:
            shutil.copyfile(source, directory / entry["name"])
        except FileNotFoundError:
            raise ReleaseUnusable(
                f"{source} is gone: restore it from a backup, or make a release of another name."
            ) from None
        if _file_entry(directory / entry["name"]) != entry:
            raise ReleaseUnusable(
                f"{source} is not as it was made (its SHA-256 differs): restore it from a backup, "
                "or make a release of another name."
            )


def _file_entry(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": path.name, "size": path.stat().st_size, "sha256": digest}
