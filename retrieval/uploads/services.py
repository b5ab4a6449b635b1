"""Uploads of files to import: begun, unpacked, previewed, imported.

An upload is a folder below VAR_DIR/uploads: `owner` names the person, `files` holds the files,
which come as `retrieval.uploads.pieces` says.
"""

from __future__ import annotations

import shutil
import time
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import QuerySet

from core import storage
from core.errors import Conflict, Invalid
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance, job_create, job_item_error
from core.locks import lock_key, transaction_lock
from retrieval.importing.choices import GUESSED, ImportChoices
from retrieval.importing.records import ImportRefused, Refusal
from retrieval.importing.services import (
    BEING_REMOVED,
    IMPORT_KIND,
    MOST_REFUSALS,
    import_images,
    removal_goes_on,
)
from retrieval.uploads.pieces import used_at
from retrieval.uploads.preview import preview_of, record_of, unused_shown, within
from retrieval.uploads.tables import table_store
from retrieval.uploads.unpacking import unpacked

PREVIEW_KIND: Final = "preview"
#: Seconds after which an upload is removed that got no file and no job.
LIFETIME: Final = 24 * 3600
#: Names of uploads' folders.
_ID: Final = "[0-9a-f]" * 32


class UploadGone(LookupError):
    """This person has no such upload; it was imported or removed."""


def upload_begin(*, by: Any) -> str:
    """Make a folder for an upload and return its id. Removes unused uploads first."""
    uploads_sweep()
    upload = uuid.uuid4().hex
    folder = _uploads() / upload
    (folder / "files").mkdir(parents=True)
    with storage.writing(folder / "owner") as file:
        file.write(str(by.pk).encode())
    return upload


def upload_folder(upload: str, by: Any) -> Path:
    """The folder of a person's upload; raises UploadGone."""
    folder = _uploads() / uuid.UUID(upload).hex
    try:
        with storage.reading(folder / "owner") as file:
            if file.read().decode() == str(by.pk):
                return folder
    except FileNotFoundError:
        pass
    raise UploadGone(upload)


@transaction.atomic
def preview_begin(*, upload: str, by: Any, choices: ImportChoices = GUESSED) -> Job:
    """Create a job that unpacks an upload and previews it as it is read by these choices, or return
    the one at work on it. Raises UploadGone.
    """
    upload_folder(upload, by)
    transaction_lock(lock_key("import", int(upload[:12], 16)))
    if job := _jobs_at_work(upload).first():
        return job
    title = "Look through an upload"
    params = {"upload": upload, "choices": choices.as_json()}
    return job_create(kind=PREVIEW_KIND, params=params, created_by=by, title=title)


def table_send(*, upload: str, table: UploadedFile[Any], by: Any) -> Job:
    """Have an upload read by another table, and create the job that previews it so.

    Raises UploadGone, Invalid for a file that is no table, and Conflict while a job is at work on
    the upload.
    """
    folder = upload_folder(upload, by)
    with transaction.atomic():
        transaction_lock(lock_key("import", int(upload[:12], 16)))
        if _jobs_at_work(upload).exists():
            raise Conflict("A job is at work on this upload. Send the table once it has ended.")
        table_store(folder=folder, table=table)
        before = preview_job(upload)
        choices = GUESSED if before is None else choices_of(before)
        return preview_begin(upload=upload, by=by, choices=choices)


def preview_job(upload: str) -> Job | None:
    """The newest job that previews an upload; its result is the preview once it is done."""
    return Job.objects.filter(kind=PREVIEW_KIND, params__upload=upload).order_by("pk").last()


def preview_step(job: Job, deadline: float) -> bool:
    """Unpack the whole upload and preview it; after a kill it begins again, with the archives that
    aren't unpacked yet.
    """
    folder = _uploads() / job.params["upload"]
    done = total = 0

    def progress(new: int, more: int) -> None:
        nonlocal done, total
        done, total = done + new, total + more
        job_advance(job=job, done=max(0, done - job.done), total=max(total, job.done))

    try:
        result = preview_of(unpacked(folder, progress), choices_of(job), progress)
    except ImportRefused as error:
        raise JobFailed(within(error.reason, folder)) from None
    job_advance(job=job, total=job.done, result=result)
    return True


def choices_of(job: Job) -> ImportChoices:
    """How the upload of a job is read."""
    return ImportChoices.from_json(job.params.get("choices"))


def import_begin(*, upload: str, dataset: str, by: Any) -> Job:
    """Create a job that imports an upload, or return the one at work on it.

    Raises UploadGone, Conflict without a preview or any image in it and while a data set is
    removed, and Invalid for a blank or long name.
    """
    upload_folder(upload, by)
    dataset = dataset.strip()
    if not 0 < len(dataset) <= 100 or not dataset.isprintable():
        raise Invalid({"dataset": ["Give a name of at most 100 characters."]})
    with transaction.atomic():
        transaction_lock(lock_key("import", int(upload[:12], 16)))
        jobs = Job.objects.filter(kind=IMPORT_KIND, params__upload=upload, state__in=Job.UNFINISHED)
        if job := jobs.first():
            return job
        upload_folder(upload, by)
        preview = preview_job(upload)
        if preview is None or preview.state != Job.State.DONE:
            raise Conflict("This upload can't be imported yet: it has no preview.")
        if not preview.result["images"]:
            raise Conflict("There is no image to import in this upload.")
        if questions := preview.result.get("table", {}).get("questions"):
            raise Conflict(questions[0]["text"])
        if removal_goes_on():
            raise Conflict(BEING_REMOVED)
        choices = replace(choices_of(preview), above=preview.result.get("above", ""))
        return job_create(
            kind=IMPORT_KIND,
            params={
                "upload": upload,
                "path": preview.result["path"],
                "dataset": dataset,
                # Also what was guessed, so that all is read as it was shown.
                "choices": preview.result.get("choices") or choices.as_json(),
            },
            created_by=by,
            title=f"Import of {dataset}",
        )


def import_step(job: Job, deadline: float) -> bool:
    """Import the whole upload, in transactions of some hundred images, and remove its files. After
    a kill it begins again and skips images that are stored.
    """
    path, folder = (_uploads() / job.params[name] for name in ("path", "upload"))
    if storage.is_shared():
        unpacked(folder)
    if not path.exists():
        raise JobFailed("The uploaded files aren't on this machine any more. Upload them again.")
    refused = 0

    def refuse(refusal: Refusal) -> None:
        nonlocal refused
        refused += 1
        if refused <= MOST_REFUSALS:
            item = ": ".join(part for part in (record_of(refusal, folder), refusal.field) if part)
            job_item_error(job=job, item=item, message=within(refusal.reason, folder))

    def progress(done: int, total: int) -> None:
        new = max(0, done - job.done - job.failed)
        job_advance(job=job, done=new, total=total)

    try:
        report = import_images(
            path=path,
            dataset=job.params["dataset"],
            choices=choices_of(job),
            progress=progress,
            on_refusal=refuse,
        )
    except ImportRefused as error:
        raise JobFailed(within(str(error), folder)) from None
    failed = job.done - report.added - report.updated - report.skipped
    job_advance(
        job=job,
        done=-failed,
        failed=failed,
        result={
            "added": report.added,
            "updated": report.updated,
            "unchanged": report.skipped,
            "refused": report.refused_count,
            "left_out": report.left_out_count,
            "renamed": report.renamed_count,
            "copies": report.copies,
            **({"unused": unused} if (unused := unused_shown(report)) else {}),
            **report.understood.numbers(),
        },
    )
    _remove(folder)
    return True


def _uploads() -> Path:
    return Path(settings.VAR_DIR) / "uploads"


def uploads_sweep() -> None:
    """Remove the uploads that nobody has imported within a day, unless a job is at work on them."""
    before = time.time() - LIFETIME
    folders = set(_uploads().glob(_ID))
    if storage.is_shared():
        # Also those that another machine began.
        folders |= {path.parent for path in storage.names_below(_uploads()) if path.name == "owner"}
    for folder in folders:
        # Another worker may sweep too.
        with suppress(FileNotFoundError):
            if used_at(folder) < before:
                _remove_unused(folder)


@transaction.atomic
def _remove_unused(folder: Path) -> None:
    # No job begins meanwhile.
    transaction_lock(lock_key("import", int(folder.name[:12], 16)))
    if not _jobs_at_work(folder.name).exists():
        _remove(folder)


def _jobs_at_work(upload: str) -> QuerySet[Job]:
    """The jobs that preview or import an upload and haven't ended."""
    return Job.objects.filter(
        kind__in=(IMPORT_KIND, PREVIEW_KIND), params__upload=upload, state__in=Job.UNFINISHED
    )


def _remove(folder: Path) -> None:
    if storage.is_shared():
        for path in storage.names_below(folder):
            storage.remove(path)
    shutil.rmtree(folder, ignore_errors=True)
