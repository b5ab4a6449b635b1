"""What an upload's import will bring, as a person sees it before."""

from __future__ import annotations

from dataclasses import replace
from itertools import count as counting
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.utils.dateformat import format as date_format

from core import storage
from core.templatetags.coordinates import latitude, longitude
from core.text import printable
from core.unpacking import Progress
from retrieval.corpus.models import Image
from retrieval.images.decoding import THUMBNAIL_SIDE, ImageRefused, open_image, thumbnail_bytes
from retrieval.importing.choices import ImportChoices
from retrieval.importing.fields import file_inside
from retrieval.importing.folder import FolderSource
from retrieval.importing.records import Effect, ImageRecord, Refusal
from retrieval.importing.services import ImportReport, look_through
from retrieval.importing.table import TableSource
from retrieval.uploads.columns import remembered_choices
from retrieval.uploads.source import source_path, unread_tables

SAMPLE: Final = 12
"""Images, and names of each kind, that a preview shows."""
MOST_SHOWN: Final = 20
#: What losses are counted in.
_LOST: Final = {
    Effect.REFUSED: "image",
    Effect.FIELD: "value",
    Effect.NAME: "name",
    Effect.PASSED_OVER: "file",
}


def preview_of(files: Path, choices: ImportChoices, progress: Progress) -> dict[str, Any]:
    """Count images, species and refusals of an upload's unpacked files as the import will, and
    store the first images' thumbnails beside them. Raises ImportRefused.
    """
    folder = files.parent
    path, above = source_path(files)
    choices = replace(choices, above=above)
    source, report, batches = look_through(path, choices)
    is_remembered = False
    if isinstance(source, TableSource) and not (choices.columns or choices.custom_fields):
        names_of_columns = [column.header for column in source.columns]
        if remembered := remembered_choices(names_of_columns, choices):
            source, report, batches = look_through(path, remembered)
            is_remembered = True
    columns = source.columns if isinstance(source, TableSource) else []
    headers = {column.field: column.header for column in columns}
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
        "path": path.relative_to(folder.parent).as_posix(),
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
                "field": headers.get(reason["field"], reason["field"]),
                "reason": within(reason["reason"].removeprefix("left out: it "), folder),
                "lost": _LOST[reason["effect"]],
                "examples": [within(one, folder) for one in reason["examples"]],
            }
            for reason in report.reasons.listed()
        ],
        "unread_tables": unread_tables(path),
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


def record_of(refusal: Refusal, folder: Path) -> str:
    """The file and the record that were refused."""
    if not refusal.record:
        return within(refusal.file, folder)
    return f"{Path(refusal.file).name}: {refusal.record}"


def within(text: str, folder: Path) -> str:
    """The text with the paths of an upload's files as people sent them."""
    return text.replace(f"{folder / 'files'}/", "").replace(f"{folder}/", "")


def upload_thumbnail(folder: Path, number: int) -> bytes:
    """The JPEG thumbnail of the preview's n-th image, from 0. FileNotFoundError: it has none."""
    with storage.reading(folder / "thumbnails" / f"{number}.jpg") as file:
        data: bytes = file.read()
    return data
