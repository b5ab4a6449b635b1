"""Bringing a data set into the corpus: read, check, store, report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Final, Protocol

from django.db import transaction
from django.db.models import Max

from retrieval.imaging import MAX_BYTES, ImageRefused
from retrieval.importing.coco import CocoSource
from retrieval.importing.fields import file_inside
from retrieval.importing.folder import FolderSource
from retrieval.importing.records import (
    ImageRecord,
    ImportRefused,
    RecordRefused,
    Refusal,
    SpeciesRecord,
)
from retrieval.locks import lock_key, transaction_lock
from retrieval.models import Embedding, Image, Species
from retrieval.services.species import species_upsert
from retrieval.storage import StoredPicture, content_hash, is_stored, picture_store

BATCH: Final = 200
REFUSALS_KEPT: Final = 1000

_FROM_RECORD: Final = (
    "file_name",
    "license",
    "license_url",
    "rights_holder",
    "observed_at",
    "latitude",
    "longitude",
    "location_uncertainty",
)
_FROM_FILE: Final = ("sha256", "format", "width", "height", "size_bytes")

Progress = Callable[[int, int], None]
OnRefusal = Callable[[Refusal], None]


@dataclass
class ImportReport:
    """What an import did: images added, updated and left as they were; records refused.

    `refused_count` is exact; `refused` keeps the first 1,000.
    """

    dataset: str
    added: int = 0
    updated: int = 0
    skipped: int = 0
    refused_count: int = 0
    refused: list[Refusal] = field(default_factory=list)

    def refuse(self, refusal: Refusal) -> None:
        self.refused_count += 1
        if len(self.refused) < REFUSALS_KEPT:
            self.refused.append(refusal)


def import_images(
    *,
    path: Path | str,
    dataset: str | None = None,
    progress: Progress | None = None,
    on_refusal: OnRefusal | None = None,
) -> ImportReport:
    """Bring a COCO file's images, or those of a folder with a sub-folder per species, in.

    An image is known again by data set and id (in a folder: by its path), so that a second import
    adds nothing; what changed is updated, and the embeddings of a changed file are dropped. Records
    that cannot be taken in are reported, and the rest goes on, 200 in a transaction. `dataset` is
    by default the file's folder and name, or the folder's name. `progress(done, total)` is called
    after each batch.

    Raises ImportRefused, before anything is written, if the source as a whole cannot be read.
    """
    return _import(lambda refuse: _source(Path(path), refuse), dataset, progress, on_refusal)


def import_listed(
    *, root: Path, records: list[ImageRecord], dataset: str, on_refusal: OnRefusal | None = None
) -> ImportReport:
    """Bring the pictures that `records` name below the folder `root` in, as `import_images`."""
    return _import(lambda refuse: _Listed(root, records, dataset), dataset, None, on_refusal)


class Source(Protocol):
    """What an import reads."""

    root: Path

    @property
    def highest_id(self) -> int: ...
    def default_dataset(self) -> str: ...
    def species(self) -> list[SpeciesRecord]: ...
    def count(self) -> int: ...
    def images(self) -> Iterator[ImageRecord]: ...


@dataclass(slots=True)
class _Listed:
    """Records that are at hand."""

    root: Path
    records: list[ImageRecord]
    dataset: str

    @property
    def highest_id(self) -> int:
        return max((one.wanted_id for one in self.records if one.wanted_id is not None), default=-1)

    def default_dataset(self) -> str:
        return self.dataset

    def species(self) -> list[SpeciesRecord]:
        return []

    def count(self) -> int:
        return len(self.records)

    def images(self) -> Iterator[ImageRecord]:
        return iter(self.records)


def _import(
    open_source: Callable[[OnRefusal], Source],
    dataset: str | None,
    progress: Progress | None,
    on_refusal: OnRefusal | None,
) -> ImportReport:
    report = ImportReport(dataset="")

    def refuse(refusal: Refusal) -> None:
        report.refuse(refusal)
        if on_refusal:
            on_refusal(refusal)

    source = open_source(refuse)
    report.dataset = dataset or source.default_dataset()
    if len(report.dataset) > 100:
        raise ImportRefused(
            str(source.root),
            "The data set's name is longer than 100 letters. Give a shorter one with --dataset.",
        )
    species = species_upsert(records=source.species())
    root = source.root.resolve()
    total, done = source.count(), 0
    images = source.images()
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as threads:
        while batch := list(islice(images, BATCH)):
            known = _known_pictures(report.dataset, batch)
            read = threads.map(lambda record: _read(root, record, known), batch)  # noqa: B023
            pictures = {}
            for record, outcome in zip(batch, read, strict=True):
                if isinstance(outcome, Refusal):
                    refuse(outcome)
                else:
                    pictures[record] = outcome
            _batch_store(report, pictures, species, above=source.highest_id)
            done += len(batch)
            if progress:
                progress(done, total)
    return report


def _source(path: Path, refuse: OnRefusal) -> CocoSource | FolderSource:
    if path.is_dir():
        return FolderSource(path, refuse)
    if path.is_file():
        return CocoSource(path, refuse)
    raise ImportRefused(str(path), "There is no such file or folder.")


def _known_pictures(dataset: str, batch: list[ImageRecord]) -> dict[str, StoredPicture]:
    rows = Image.objects.filter(dataset=dataset, source_id__in=[r.source_id for r in batch])
    return {row[0]: StoredPicture(*row[1:]) for row in rows.values_list("source_id", *_FROM_FILE)}


def _read(
    root: Path, record: ImageRecord, known: dict[str, StoredPicture]
) -> StoredPicture | Refusal:
    """Read and store one file; one that is the same as at the last import is not decoded."""
    try:
        data = _bytes_of(file_inside(root, record.file_name))
        before = known.get(record.source_id)
        if before and before.sha256 == content_hash(data) and is_stored(before.sha256):
            return before
        return picture_store(data)
    except RecordRefused as error:
        return Refusal(record.file_name, record.record, error.field, error.reason)
    except ImageRefused as error:
        return Refusal(record.file_name, record.record, "file", str(error))


def _bytes_of(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise RecordRefused("file", f"has {size} bytes; at most {MAX_BYTES} are allowed")
        return path.read_bytes()
    except OSError as error:
        raise RecordRefused("file", f"cannot be read: {error.strerror}") from error


@transaction.atomic
def _batch_store(
    report: ImportReport,
    pictures: dict[ImageRecord, StoredPicture],
    species: dict[str, Species],
    *,
    above: int,
) -> None:
    # One import at a time gives out ids. Rows are locked in the order of their ids, as embedding
    # does.
    transaction_lock(lock_key("corpus"))
    known = {
        image.source_id: image
        for image in Image.objects.select_for_update(of=("self",), no_key=True)
        .filter(dataset=report.dataset, source_id__in=[r.source_id for r in pictures])
        .order_by("pk")
    }
    new, changed, stale = [], [], []
    for record, picture in pictures.items():
        values = {name: getattr(record, name) for name in _FROM_RECORD}
        values |= {name: getattr(picture, name) for name in _FROM_FILE}
        found = species.get(record.scientific_name)
        values["species_id"] = found.pk if found else None
        image = known.get(record.source_id)
        if image is None:
            new.append(
                (record, Image(dataset=report.dataset, source_id=record.source_id, **values))
            )
            continue
        if image.sha256 != picture.sha256:
            stale.append(image.pk)
        if any(getattr(image, name) != value for name, value in values.items()):
            for name, value in values.items():
                setattr(image, name, value)
            changed.append(image)
    _ids_assign(new, above)
    Image.objects.bulk_create([image for _, image in new])
    Image.objects.bulk_update(changed, [*_FROM_RECORD, *_FROM_FILE, "species"])
    Embedding.objects.filter(image_id__in=stale).delete()
    report.added += len(new)
    report.updated += len(changed)
    report.skipped += len(pictures) - len(new) - len(changed)


def _ids_assign(new: list[tuple[ImageRecord, Image]], above: int) -> None:
    """Give each new image the id that it asks for where that is free, else the next free one.

    The next free ones lie above what any record of this source asks for.
    """
    wanted = [record.wanted_id for record, _ in new if record.wanted_id is not None]
    taken = set(Image.objects.filter(pk__in=wanted).values_list("pk", flat=True))
    highest = Image.objects.aggregate(highest=Max("pk"))["highest"]
    free = count(max(above, -1 if highest is None else highest) + 1)
    for record, image in new:
        unfit = record.wanted_id is None or record.wanted_id in taken
        image.pk = next(free) if unfit else record.wanted_id
