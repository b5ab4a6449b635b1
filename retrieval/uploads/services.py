"""Uploads of files to import: begun, unpacked, previewed, imported.

An upload is a folder below VAR_DIR/uploads: `owner` names the person, `files` holds the files,
which come as `retrieval.uploads.pieces` says.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import time
import uuid
import zipfile
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count as counting
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
from core.text import printable
from core.unpacking import Bounds, Progress, UnpackRefused, unpack_zip
from retrieval.corpus.models import Image
from retrieval.images.decoding import THUMBNAIL_SIDE, ImageRefused, open_image, thumbnail_bytes
from retrieval.importing.choices import GUESSED, ImportChoices
from retrieval.importing.fields import file_inside
from retrieval.importing.folder import IMAGE_SUFFIXES, FolderSource
from retrieval.importing.headers import is_canonical
from retrieval.importing.known_names import known_names
from retrieval.importing.records import Effect, ImageRecord, ImportRefused, Refusal
from retrieval.importing.services import (
    BEING_REMOVED,
    MOST_REFUSALS,
    ImportReport,
    import_images,
    look_through,
    removal_goes_on,
)
from retrieval.importing.sheets import SUFFIXES
from retrieval.importing.sidecars import is_litter
from retrieval.importing.species_names import taxon_of
from retrieval.importing.table import TableSource
from retrieval.importing.table_choice import several_tables, split_tables, table_among
from retrieval.uploads.columns import remembered_choices
from retrieval.uploads.pieces import MOST_FILES, pieces_gather, used_at
from retrieval.uploads.tables import table_place, table_store

KIND: Final = "import"
PREVIEW_KIND: Final = "preview"
#: Seconds after which an upload is removed that got no file and no job.
LIFETIME: Final = 24 * 3600
SAMPLE: Final = 12
MOST_SHOWN: Final = 20
_BUFFER: Final = 1 << 20
#: What losses are counted in.
_LOST: Final = {
    Effect.REFUSED: "image",
    Effect.FIELD: "value",
    Effect.NAME: "name",
    Effect.PASSED_OVER: "file",
}
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
        if archives := sorted(p for p in files.iterdir() if p.suffix.lower() == ".zip"):
            bounds = _bounds(files, besides=archives)
            _refuse_clashes(archives)
            for archive in archives:
                with (folder / "archives").open("a") as names:
                    names.write(f"{archive.stem}\n")
                _unpack(archive, files, bounds, progress)
        table_place(folder, files, lambda files: _source_path(files)[0])
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
        result = _preview(folder, choices_of(job), progress)
    except ImportRefused as error:
        raise JobFailed(_within(error.reason, folder)) from None
    job_advance(job=job, total=job.done, result=result)
    return True


def choices_of(job: Job) -> ImportChoices:
    """How the upload of a job is read."""
    return ImportChoices.from_json(job.params.get("choices"))


def _preview(folder: Path, choices: ImportChoices, progress: Progress) -> dict[str, Any]:
    """Unpack archives, count images, species and refusals as the import will, and store the first
    images' thumbnails. Raises ImportRefused.
    """
    files = _unpacked(folder, progress)
    path, above = _source_path(files)
    choices = replace(choices, above=above)
    source, report, batches = look_through(path, choices)
    is_remembered = False
    if isinstance(source, TableSource) and not (choices.columns or choices.custom_fields):
        headers = [column.header for column in source.columns]
        if remembered := remembered_choices(headers, choices, kind=KIND):
            source, report, batches = look_through(path, remembered)
            is_remembered = True
    progress(0, source.count())
    dataset = "upload" if path == files else report.dataset.removeprefix("files/")
    images, already_stored, sample, thumbnails = 0, 0, list[dict[str, Any]](), 0
    same, replaced = 0, 0
    understood = report.understood
    names: dict[str, list[dict[str, Any]]] = {"species": [], "folders": [], "taxa": []}
    for count, batch in batches:
        hashes = []
        ids = [record.source_id for record, _ in batch]
        there = dict(
            Image.objects.filter(dataset=dataset, source_id__in=ids)
            .exclude(sha256="")
            .values_list("source_id", "sha256")
        )
        for record, (sha256, *_) in batch:
            same += there.get(record.source_id) == sha256
            replaced += there.get(record.source_id, sha256) != sha256
            new = [
                (kind, name)
                for kind, name in understood.new_in(record)
                if len(names[kind]) < SAMPLE
            ]
            if len(sample) < SAMPLE or new:
                target = folder / "thumbnails" / f"{thumbnails}.jpg"
                if problem := _thumbnail_store(source.root, record, target):
                    report.refuse(problem)
                    continue
                if len(sample) < SAMPLE:
                    sample.append(_sampled(record))
                for kind, name in new:
                    names[kind].append({"name": name, "thumbnail": thumbnails})
                thumbnails += 1
            understood.take(record)
            hashes.append(sha256)
        images += len(hashes)
        stored_hashes = set(
            Image.objects.filter(sha256__in=hashes).values_list("sha256", flat=True)
        )
        already_stored += sum(sha256 in stored_hashes for sha256 in hashes)
        progress(count, 0)
    return {
        "path": path.relative_to(_uploads()).as_posix(),
        "above": above,
        "of_folders": isinstance(source, FolderSource),
        "dataset": dataset if same or not replaced else _free_name(dataset),
        "replaced_in": dataset,
        "replaced": replaced,
        "images": images,
        **understood.numbers(),
        "names": {
            kind: [one | {"images": getattr(understood, kind)[one["name"]]} for one in listed]
            for kind, listed in names.items()
        },
        "known": already_stored,
        "sample": sample,
        "refused_count": report.refused_count,
        "left_out_count": report.left_out_count,
        "renamed_count": report.renamed_count,
        "unused": unused_shown(report),
        "reasons": [
            reason
            | {
                "reason": _within(reason["reason"].removeprefix("left out: it "), folder),
                "lost": _LOST[reason["effect"]],
                "examples": [_within(one, folder) for one in reason["examples"]],
            }
            for reason in report.reasons.listed()
        ],
        "unread_tables": _unread_tables(path),
        **(
            {
                "table": source.described() | {"remembered": is_remembered},
                "choices": source.choices.as_json(),
            }
            if isinstance(source, TableSource)
            else {}
        ),
    }


def unused_shown(report: ImportReport) -> list[str]:
    """The first MOST_SHOWN columns that an import didn't use, each of at most 100 characters."""
    return [printable(name)[:100] for name in report.unused[:MOST_SHOWN]]


def _free_name(dataset: str) -> str:
    """The name of a data set with the first number that makes it new."""
    taken = set(
        Image.objects.filter(dataset__startswith=dataset)
        .values_list("dataset", flat=True)
        .distinct()
    )
    return next(name for n in counting(2) if (name := f"{dataset} {n}") not in taken)


def _sampled(record: ImageRecord) -> dict[str, Any]:
    """An image in the preview."""
    location = ""
    if record.latitude is not None and record.longitude is not None:
        location = f"{latitude(record.latitude)}, {longitude(record.longitude)}"
    return {
        "file_name": record.file_name,
        "species": record.scientific_name,
        "taxon": record.taxon_text,
        "date": date_format(record.observed_at, "j M Y") if record.observed_at else "",
        "place": location,
        "license": record.license or record.license_text,
        "obscured": record.coordinates_obscured,
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

    Raises UploadGone, Conflict without a preview or any image in it and while a data set is
    removed, and Invalid for a blank or long name.
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
        if not preview.result["images"]:
            raise Conflict("There is no image to import in this upload.")
        if questions := preview.result.get("table", {}).get("questions"):
            raise Conflict(questions[0]["text"])
        if removal_goes_on():
            raise Conflict(BEING_REMOVED)
        choices = replace(choices_of(preview), above=preview.result.get("above", ""))
        return job_create(
            kind=KIND,
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
            choices=choices_of(job),
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
        kind__in=(KIND, PREVIEW_KIND), params__upload=upload, state__in=Job.UNFINISHED
    )


def _remove(folder: Path) -> None:
    if storage.is_shared():
        for path in storage.names_below(folder):
            storage.remove(path)
    shutil.rmtree(folder, ignore_errors=True)


def _unpack(archive: Path, into: Path, bounds: Bounds, progress: Progress) -> None:
    """Unpack a ZIP archive into a folder and remove it. Raises ImportRefused for an archive that is
    broken, leads out of the folder, or passes the bounds. Some programs of Windows separate folders
    by backslashes alone.
    """

    def target_of(name: str) -> Path | None:
        if "/" not in name:
            name = name.replace("\\", "/")
        if not is_below(name):
            raise ImportRefused(archive.name, "A path in it leads out of its folder.")
        if name.endswith("/") or any(map(is_litter, PurePosixPath(name).parts)):
            return None
        if into / name == archive:
            raise ImportRefused(archive.name, "It holds a file of its own name.")
        return into / name

    try:
        unpack_zip(archive, target_of, bounds, progress)
    except UnpackRefused as error:
        raise ImportRefused(archive.name, str(error)) from None
    archive.unlink()


def _refuse_clashes(archives: Sequence[Path]) -> None:
    """Raise ImportRefused where two archives hold different images at one path."""
    seen: dict[str, tuple[int, str]] = {}
    for archive in archives if len(archives) > 1 else ():
        # What is broken is refused when it is unpacked.
        with suppress(zipfile.BadZipFile, ValueError), zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                if PurePosixPath(entry.filename).suffix.lower() not in IMAGE_SUFFIXES:
                    continue
                content, first = seen.setdefault(entry.filename, (entry.CRC, archive.name))
                if content != entry.CRC:
                    raise ImportRefused(
                        archive.name,
                        f"“{entry.filename[:100]}” is another image in {first}. Upload the files "
                        "one after the other, under two names.",
                    )


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


def _names_images(path: Path) -> bool:
    """Whether a file has what only a list of images has: a COCO file's key, or the canonical
    header of a table.
    """
    with path.open("rb") as file:
        if path.suffix.lower() != ".json":
            return is_canonical(file.readline(_BUFFER).decode("utf-8-sig", "replace").split(","))
        before = b""
        while block := file.read(_BUFFER):
            if b'"images"' in before + block:
                return True
            before = block[-16:]
    return False


def _lists(entries: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The files of a folder that may list its images: JSON files, but those that describe images
    beside them, and tables.
    """
    objects = [entry for entry in entries if _is_table(entry, (".json",))]
    if objects:
        beside = objects[0].parent.rglob("*")
        if any(path.suffix.lower() in IMAGE_SUFFIXES for path in beside):
            objects = [path for path in objects if _names_images(path)]
    return objects, [entry for entry in entries if _is_table(entry, SUFFIXES)]


def _listing(entries: Sequence[Path]) -> Path | None:
    """The file of a folder that lists its images: a COCO file, else a table; None where there is
    none. Raises ImportRefused for several.
    """
    objects, tables = _lists(entries)
    usable = [path for path in objects if _names_images(path)]
    if usable:
        usable += [path for path in tables if _names_images(path)]
    elif table := table_among(tables):
        return table
    elif any(entry.is_dir() for entry in entries):
        # Tables beside folders of images are notes.
        usable = objects
    else:
        usable = [*objects, *(path for path in tables if path.suffix.lower() != ".txt")]
    if len(usable) > 1:
        raise several_tables(usable)
    return usable[0] if usable else None


def _is_table(path: Path, suffixes: Container[str]) -> bool:
    """Whether a file is a table by its name; not one that a program leaves beside an open one."""
    litter = path.name.startswith((".", "~$"))
    return path.suffix.lower() in suffixes and not litter and path.is_file()


def _unread_tables(path: Path) -> list[str]:
    """The names of the tables that lie beside what is imported."""
    folder = path if path.is_dir() else path.parent
    suffixes = [suffix for suffix in SUFFIXES if suffix != ".txt"]
    beside = (one for one in sorted(folder.iterdir()) if _is_table(one, suffixes))
    return [one.name for one in beside if one != path]


def _source_path(files: Path) -> tuple[Path, str]:
    """What to import: a COCO file or a table at the top, the folder of the tables of splits, else a
    folder; and the names of folders above it that say something of the images.

    Descends into a single folder that holds everything, unless it is a species' own. The first of
    these is the folder that was chosen, or that a ZIP file was made of: its name says nothing but
    what the upload was called, unless it is a taxon's, and goes to the data set.
    """
    folder = files
    while True:
        entries = sorted(entry for entry in folder.iterdir() if not is_litter(entry.name))
        if listing := _listing(entries):
            return listing, ""
        if split_tables(folder):
            return folder, ""
        if not entries:
            raise ImportRefused("upload", "Nothing was uploaded.")
        if len(entries) > 1 or not _is_wrapper(entries[0]):
            return folder, _above(files, folder)
        folder = entries[0]


def _is_wrapper(folder: Path) -> bool:
    """Whether a folder that is alone holds others or a list of images, and isn't a species' own."""
    if not folder.is_dir():
        return False
    inside = list(folder.iterdir())
    if any(_lists(inside)):
        return True
    return any(path.is_dir() for path in inside) and taxon_of(folder.name).species is None


def _above(files: Path, folder: Path) -> str:
    """The names of the folders down to one of an upload, without that of the upload itself."""
    names = list(folder.relative_to(files).parts)
    archives = files.with_name("archives")
    stems = archives.read_text().lower().splitlines() if archives.exists() else []
    if names and not taxon_of(names[0], known_names(by_form=False)).recognized:
        name = re.escape(names[0].lower())
        # Such as photos-001.zip, photos (1).zip.
        if not stems or any(re.match(rf"{name}(\W|_|$)", stem) for stem in stems):
            del names[0]
    return "/".join(names)
