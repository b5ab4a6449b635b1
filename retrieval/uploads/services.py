"""Uploads of files to import: begun, unpacked, previewed, imported.

An upload is a folder below VAR_DIR/uploads: `owner` names the person, `files` holds the files,
which come as `retrieval.uploads.pieces` says.
"""

from __future__ import annotations

import fcntl
import shutil
import time
import uuid
from collections.abc import Container
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models import QuerySet
from django.utils.dateformat import format as date_format

from core import storage
from core.errors import Conflict, Invalid
from core.files import is_below
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance, job_create, job_item_error
from core.locks import lock_key, transaction_lock
from core.templatetags.coordinates import latitude, longitude
from core.unpacking import Bounds, Progress, UnpackRefused, unpack_zip
from retrieval.corpus.models import Image
from retrieval.images.decoding import THUMBNAIL_SIDE, ImageRefused, open_image, thumbnail_bytes
from retrieval.importing.choices import GUESSED, ImportChoices
from retrieval.importing.fields import file_inside
from retrieval.importing.records import ImageRecord, ImportRefused, Refusal
from retrieval.importing.services import (
    BEING_REMOVED,
    MOST_REFUSALS,
    import_images,
    look_through,
    removal_goes_on,
)
from retrieval.importing.table import REQUIRED
from retrieval.uploads.pieces import MOST_FILES, pieces_gather, used_at
from retrieval.uploads.tables import table_place, table_store

KIND: Final = "import"
PREVIEW_KIND: Final = "preview"
#: Seconds after which an upload is removed that got no file and no job.
LIFETIME: Final = 24 * 3600
SAMPLE: Final = 12
MOST_SHOWN: Final = 20
_BUFFER: Final = 1 << 20
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


def _unpacked(folder: Path, progress: Progress = lambda done, more: None) -> Path:
    """The folder of an upload's files, with its archives unpacked. Raises ImportRefused."""
    files = folder / "files"
    files.mkdir(parents=True, exist_ok=True)
    # A job that was canceled may still be unpacking.
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if storage.is_shared():
            pieces_gather(folder)
        if archives := {path for path in files.iterdir() if path.suffix.lower() == ".zip"}:
            bounds = _bounds(files, besides=archives)
            for archive in archives:
                _unpack(archive, files, bounds, progress)
        table_place(folder, files, _source_path)
    return files


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
        choices = GUESSED if before is None else _choices_of(before)
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
        result = _preview(folder, _choices_of(job), progress)
    except ImportRefused as error:
        raise JobFailed(_within(error.reason, folder)) from None
    job_advance(job=job, total=job.done, result=result)
    return True


def _choices_of(job: Job) -> ImportChoices:
    return ImportChoices.from_json(job.params.get("choices"))


def _preview(folder: Path, choices: ImportChoices, progress: Progress) -> dict[str, Any]:
    """Unpack archives, count images, species and refusals as the import will, and store the first
    images' thumbnails. Raises ImportRefused.
    """
    files = _unpacked(folder, progress)
    path = _source_path(files)
    source, report, batches = look_through(path, choices)
    progress(0, source.count())
    images, already_stored, sample = 0, 0, list[dict[str, Any]]()
    for count, batch in batches:
        hashes = []
        for record, (sha256, *_) in batch:
            if len(sample) < SAMPLE:
                target = folder / "thumbnails" / f"{len(sample)}.jpg"
                if problem := _thumbnail_store(source.root, record, target):
                    report.refuse(problem)
                    continue
                sample.append(_sampled(record))
            hashes.append(sha256)
        images += len(hashes)
        stored_hashes = set(
            Image.objects.filter(sha256__in=hashes).values_list("sha256", flat=True)
        )
        already_stored += sum(sha256 in stored_hashes for sha256 in hashes)
        progress(count, 0)
    return {
        "path": path.relative_to(_uploads()).as_posix(),
        "dataset": "upload" if path == files else report.dataset.removeprefix("files/"),
        "images": images,
        "species": len(source.species()),
        "known": already_stored,
        "sample": sample,
        "refused_count": report.refused_count,
        "left_out_count": report.left_out_count,
        "renamed_count": report.renamed_count,
        "refused": [
            {
                "record": _record(refusal, folder),
                "field": refusal.field,
                "reason": _within(refusal.reason, folder),
            }
            for refusal in report.refused[:MOST_SHOWN]
        ],
    }


def _sampled(record: ImageRecord) -> dict[str, Any]:
    """An image in the preview."""
    location = ""
    if record.latitude is not None and record.longitude is not None:
        location = f"{latitude(record.latitude)}, {longitude(record.longitude)}"
    return {
        "file_name": record.file_name,
        "species": record.scientific_name,
        "date": date_format(record.observed_at, "j M Y") if record.observed_at else "",
        "place": location,
        "license": record.license,
    }


def _thumbnail_store(root: Path, record: ImageRecord, target: Path) -> Refusal | None:
    """Store an image's JPEG thumbnail, or tell why its file can't be decoded."""
    data = file_inside(root.resolve(), record.file_name).read_bytes()
    try:
        with open_image(
            data, max_pixels=settings.IMAGE_MAX_PIXELS, at_least=THUMBNAIL_SIDE
        ) as image:
            thumbnail = thumbnail_bytes(image)
    except ImageRefused as error:
        return Refusal(record.file_name, record.record, "file", str(error))
    with storage.writing(target, durable=False) as file:
        file.write(thumbnail)
    return None


def _record(refusal: Refusal, folder: Path) -> str:
    """The file and the record that were refused."""
    if not refusal.record:
        return _within(refusal.file, folder)
    return f"{Path(refusal.file).name}: {refusal.record}"


def _within(text: str, folder: Path) -> str:
    """The text with the paths of an upload's files as people sent them."""
    return text.replace(f"{folder / 'files'}/", "").replace(f"{folder}/", "")


def upload_thumbnail(folder: Path, number: int) -> bytes:
    """The JPEG thumbnail of the preview's n-th image, from 0. FileNotFoundError: it has none."""
    with storage.reading(folder / "thumbnails" / f"{number}.jpg") as file:
        data: bytes = file.read()
    return data


def import_begin(*, upload: str, dataset: str, by: Any) -> Job:
    """Create a job that imports an upload, or return the one at work on it.

    Raises UploadGone, Conflict without a preview and while a data set is removed, and Invalid for a
    blank or long name.
    """
    upload_folder(upload, by)
    dataset = dataset.strip()
    if not 0 < len(dataset) <= 100 or not dataset.isprintable():
        raise Invalid({"dataset": ["Give a name of at most 100 characters."]})
    with transaction.atomic():
        transaction_lock(lock_key("import", int(upload[:12], 16)))
        jobs = Job.objects.filter(kind=KIND, params__upload=upload, state__in=Job.UNFINISHED)
        if job := jobs.first():
            return job
        upload_folder(upload, by)
        preview = preview_job(upload)
        if preview is None or preview.state != Job.State.DONE:
            raise Conflict("This upload can't be imported yet: it has no preview.")
        if removal_goes_on():
            raise Conflict(BEING_REMOVED)
        return job_create(
            kind=KIND,
            params={
                "upload": upload,
                "path": preview.result["path"],
                "dataset": dataset,
                "choices": _choices_of(preview).as_json(),
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
        _unpacked(folder)
    if not path.exists():
        raise JobFailed("The uploaded files aren't on this machine any more. Upload them again.")
    refused = 0

    def refuse(refusal: Refusal) -> None:
        nonlocal refused
        refused += 1
        if refused <= MOST_REFUSALS:
            item = ": ".join(part for part in (_record(refusal, folder), refusal.field) if part)
            job_item_error(job=job, item=item, message=_within(refusal.reason, folder))

    def progress(done: int, total: int) -> None:
        new = max(0, done - job.done - job.failed)
        job_advance(job=job, done=new, total=total)

    try:
        report = import_images(
            path=path,
            dataset=job.params["dataset"],
            choices=_choices_of(job),
            progress=progress,
            on_refusal=refuse,
        )
    except ImportRefused as error:
        raise JobFailed(_within(str(error), folder)) from None
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
        kind__in=(KIND, PREVIEW_KIND), params__upload=upload, state__in=Job.UNFINISHED
    )


def _remove(folder: Path) -> None:
    if storage.is_shared():
        for path in storage.names_below(folder):
            storage.remove(path)
    shutil.rmtree(folder, ignore_errors=True)


def _unpack(archive: Path, into: Path, bounds: Bounds, progress: Progress) -> None:
    """Unpack a ZIP archive into a folder and remove it. Raises ImportRefused for an archive that is
    broken, leads out of the folder, or passes the bounds.
    """

    def target_of(name: str) -> Path | None:
        if _is_litter(name):
            return None
        if not is_below(name):
            raise ImportRefused(archive.name, "A path in it leads out of its folder.")
        if into / name == archive:
            raise ImportRefused(archive.name, "It holds a file of its own name.")
        return into / name

    try:
        unpack_zip(archive, target_of, bounds, progress)
    except UnpackRefused as error:
        raise ImportRefused(archive.name, str(error)) from None
    archive.unlink()


def _bounds(files: Path, *, besides: Container[Path]) -> Bounds:
    """What the archives of an upload may become together with its other files."""
    sizes = [path.stat().st_size for path in files.rglob("*") if path not in besides]
    return Bounds(
        most_files=MOST_FILES,
        most_size=settings.UPLOAD_MAX_BYTES,
        least_free=settings.DISK_MIN_FREE_BYTES,
        files=len(sizes),
        size=sum(sizes),
    )


def _is_litter(name: str) -> bool:
    """Whether a file was added to the archive by an operating system."""
    parts = PurePosixPath(name).parts
    return "__MACOSX" in parts or any(part.startswith(".") and part != ".." for part in parts)


def _names_images(path: Path) -> bool:
    """Whether a file has what only a list of images has: a table's columns, a COCO file's key."""
    with path.open("rb") as file:
        if path.suffix.lower() == ".csv":
            header = file.readline(_BUFFER).decode("utf-8-sig", errors="replace")
            return all(column in header for column in REQUIRED)
        before = b""
        while block := file.read(_BUFFER):
            if b'"images"' in before + block:
                return True
            before = block[-16:]
    return False


def _source_path(files: Path) -> Path:
    """What to import: a COCO file or a table at the top, else the folder of species.

    Descends into a single folder that holds everything, unless it is a species' own.
    """
    folder = files
    while True:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
        listed = [entry for entry in entries if entry.suffix.lower() in (".json", ".csv")]
        if len(listed) == 1:
            return listed[0]
        if len(listed) > 1:
            usable = [entry for entry in listed if _names_images(entry)]
            if len(usable) == 1:
                return usable[0]
            names = ", ".join(entry.name for entry in listed[:5])
            raise ImportRefused(
                folder.name,
                f"It holds several tables ({names}). Leave only the one that lists the images.",
            )
        folders = [entry for entry in entries if entry.is_dir()]
        subfolders = [path for entry in folders for path in entry.iterdir() if path.is_dir()]
        if len(entries) == len(folders) == 1 and (
            subfolders or list(folders[0].glob("*.json")) or list(folders[0].glob("*.csv"))
        ):
            folder = folders[0]
            continue
        if not entries:
            raise ImportRefused("upload", "Nothing was uploaded.")
        return folder
