"""Bringing a data set into the corpus: read, check, store, report."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from django.db import connection

from core.text import has_controls
from retrieval.corpus.models import Image, ImageRoot
from retrieval.importing.coco import CocoSource
from retrieval.importing.copy_rows import image_row
from retrieval.importing.files import Batch, images_in_place, images_read
from retrieval.importing.folder import FolderSource
from retrieval.importing.records import ImageRecord, ImportRefused, Refusal, SpeciesRecord
from retrieval.importing.rows import image_rows_store
from retrieval.importing.species import species_upsert

REFUSALS_KEPT: Final = 1000
# Counts of species are kept once a statement, which is dear where a batch has images of each.
BATCH_IN_PLACE: Final = 50_000
# After so many rows the planner looks at the table anew at once, not when it is next due.
_ANALYZED_FROM: Final = 10_000

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
    root: ImageRoot | None = None,
    progress: Progress | None = None,
    checking: Progress | None = None,
    on_refusal: OnRefusal | None = None,
) -> ImportReport:
    """Bring a COCO file's images, or those of a folder with a sub-folder per species, in.

    An image is known again by data set and id (in a folder: by its path), so that a second import
    adds nothing; what changed is updated, and the embeddings of a changed file are dropped. Records
    that cannot be taken in are reported, and the rest goes on, 200 in a transaction: an import that
    was killed goes on where it was when it is run again. `dataset` is by default the file's folder
    and name, or the folder's name.

    With `root` a COCO file's images stay there: the files are neither read nor copied nor looked
    for, their sizes are those of their records, and 50,000 go into a transaction.

    `checking(done, size)` hears of the bytes of a COCO file that is looked through first,
    `progress(done, total)` of the images, at once and after each transaction.

    Raises ImportRefused, before anything is written, if the source as a whole cannot be read.
    """
    path = Path(path)
    if root is not None and path.is_dir():
        raise ImportRefused(
            str(path),
            "A folder doesn't tell the sizes of its images, which are needed for images that stay "
            "where they are. Import a COCO file with their widths and heights, or let the images "
            "be copied.",
        )
    return _import(
        lambda refuse: _source(path, refuse, checking), dataset, root, progress, on_refusal
    )


def import_listed(
    *, root: Path, records: list[ImageRecord], dataset: str, on_refusal: OnRefusal | None = None
) -> ImportReport:
    """Bring the pictures that `records` name below the folder `root` in, as `import_images`."""
    return _import(lambda refuse: _Listed(root, records, dataset), dataset, None, None, on_refusal)


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
    root: ImageRoot | None,
    progress: Progress | None,
    on_refusal: OnRefusal | None,
) -> ImportReport:
    report = ImportReport(dataset="")
    refusals = _Refusals(report, on_refusal)
    source = open_source(refusals.take)
    report.dataset = dataset or source.default_dataset()
    if len(report.dataset) > 100:
        raise ImportRefused(
            str(source.root),
            "The data set's name is longer than 100 letters. Give a shorter one with --dataset.",
        )
    if has_controls(report.dataset):
        raise ImportRefused(
            str(source.root),
            f"The data set's name holds control characters: {report.dataset!r}. Give another with "
            "--dataset.",
        )
    species = species_upsert(records=source.species())
    ids = {name: one.pk for name, one in species.items()}
    if root is None:
        found = images_read(
            images=source.images(),
            dataset=report.dataset,
            root=source.root,
            refuse=refusals.take,
        )
        batches = _prepared(found, ids, None, at_once=1)
    else:
        found = images_in_place(images=source.images(), refuse=refusals.take)
        batches = _ahead(_prepared(found, ids, root.pk, at_once=BATCH_IN_PLACE))
    total, done = source.count(), 0
    if progress:
        progress(0, total)
    fresh = not Image.objects.filter(dataset=report.dataset).exists()
    for looked_at, rows, wanted in batches:
        stored = image_rows_store(
            dataset=report.dataset,
            rows=rows,
            wanted=wanted,
            above=source.highest_id,
            fresh=fresh,
        )
        fresh = stored.fresh
        report.added += stored.added
        report.updated += stored.updated
        report.skipped += stored.skipped
        refusals.tell()
        done += looked_at
        if progress:
            progress(done, total)
    refusals.tell()
    if report.added + report.updated >= _ANALYZED_FROM:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE retrieval_image")
    return report


def _source(path: Path, refuse: OnRefusal, checking: Progress | None) -> CocoSource | FolderSource:
    if path.is_dir():
        return FolderSource(path, refuse)
    if path.is_file():
        return CocoSource(path, refuse, checking)
    if path.exists():
        raise ImportRefused(str(path), "This is neither a file nor a folder.")
    raise ImportRefused(str(path), "There is no such file or folder.")


class _Refusals:
    """Reports refusals on the thread that it was made on, whichever they come from."""

    def __init__(self, report: ImportReport, on_refusal: OnRefusal | None) -> None:
        self._report = report
        self._on_refusal = on_refusal
        self._thread = threading.get_ident()
        self._waiting: deque[Refusal] = deque()

    def take(self, refusal: Refusal) -> None:
        self._waiting.append(refusal)
        if threading.get_ident() == self._thread:
            self.tell()

    def tell(self) -> None:
        while self._waiting:
            refusal = self._waiting.popleft()
            self._report.refuse(refusal)
            if self._on_refusal:
                self._on_refusal(refusal)


_Prepared = tuple[int, list[bytes], list[int | None]]


def _prepared(
    batches: Iterator[Batch], species: dict[str, int], root_id: int | None, *, at_once: int
) -> Iterator[_Prepared]:
    """Yield (images looked at, rows for the database, ids asked for) of as many batches as have so
    many images together.
    """
    looked_at, rows, wanted = 0, list[bytes](), list[int | None]()
    for count, pictures in batches:
        looked_at += count
        rows += [
            image_row(record, facts, species.get(record.scientific_name), root_id)
            for record, facts in pictures
        ]
        wanted += [record.wanted_id for record, _ in pictures]
        if looked_at >= at_once:
            yield looked_at, rows, wanted
            looked_at, rows, wanted = 0, [], []
    if looked_at:
        yield looked_at, rows, wanted


def _ahead(batches: Iterator[_Prepared]) -> Iterator[_Prepared]:
    """Prepare each batch, on a thread of its own, while the one before is dealt with."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        coming = thread.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = thread.submit(next, batches, None)
            yield batch
