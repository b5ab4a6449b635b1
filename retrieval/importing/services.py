"""Import of a data set into the corpus: read, check, store, report."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from django.db import connection, transaction

from core.jobs.models import Job
from core.locks import lock_key, transaction_lock, try_session_lock
from core.text import has_controls
from retrieval.corpus.models import CustomField, DatasetMark, Image, ImageRoot
from retrieval.images.storage import image_facts
from retrieval.importing.choices import GUESSED, ImportChoices
from retrieval.importing.coco import CocoSource
from retrieval.importing.files import Batch, images_in_place, images_read
from retrieval.importing.folder import FolderSource
from retrieval.importing.marks import marked
from retrieval.importing.records import (
    Effect,
    ImageRecord,
    ImportRefused,
    Refusal,
    SpeciesRecord,
)
from retrieval.importing.rows import image_row, image_rows_store
from retrieval.importing.sheets import SUFFIXES
from retrieval.importing.species import species_upsert
from retrieval.importing.summary import Reasons, Understood
from retrieval.importing.table import TableSource
from retrieval.importing.table_choice import split_tables

MOST_REFUSALS: Final = 1000
# Each statement updates the counts of species, which is slow if a batch has images of all.
BATCH_IN_PLACE: Final = 50_000
# After this many new rows the planner's statistics are updated at once.
_ANALYZED_FROM: Final = 10_000

IMPORT_KIND: Final = "import"
"""The job that imports an upload."""
REMOVAL_KIND: Final = "remove_dataset"
"""The job that removes a data set: it deletes files that an import may be about to use."""
BEING_REMOVED: Final = "A data set is being removed. Import images after that."

Progress = Callable[[int, int], None]
OnRefusal = Callable[[Refusal], None]


@dataclass
class ImportReport:
    """The result of an import: images added, updated and unchanged; records refused; of the others,
    fields left out and names of files in another form; what was understood, and reasons.

    The counts are exact; `refused` has the first 1,000 of what they count.
    """

    dataset: str
    added: int = 0
    updated: int = 0
    skipped: int = 0
    refused_count: int = 0
    left_out_count: int = 0
    renamed_count: int = 0
    understood: Understood = field(default_factory=Understood)
    """Of the images that were read; empty for an import in place."""
    reasons: Reasons = field(default_factory=Reasons)
    copies: int = 0
    """Of the images that were read, those whose file another data set has too, byte for byte."""
    refused: list[Refusal] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    """Columns of the source that are neither read nor kept."""
    columns: list[str] = field(default_factory=list)
    """What the other columns of a table are read as, for people."""

    def refuse(self, refusal: Refusal) -> None:
        """Count a refused record, a field that is left out, or a name in another form."""
        self.reasons.take(refusal)
        match refusal.effect:
            case Effect.REFUSED:
                self.refused_count += 1
            case Effect.FIELD:
                self.left_out_count += 1
            case Effect.NAME:
                self.renamed_count += 1
        if len(self.refused) < MOST_REFUSALS:
            self.refused.append(refusal)


def import_images(
    *,
    path: Path | str,
    dataset: str | None = None,
    choices: ImportChoices = GUESSED,
    root: ImageRoot | None = None,
    progress: Progress | None = None,
    checking: Progress | None = None,
    on_refusal: OnRefusal | None = None,
) -> ImportReport:
    """Import the images of a COCO file, of a table, or of a folder of any kind.

    An image is recognized by data set and id (in a folder: by its path), so that a second import
    adds nothing; changed records are updated, and the embeddings of changed files deleted. Invalid
    records are reported and skipped. 200 images go into a transaction: an import that was killed
    can be run again to continue. `dataset` is by default the file's folder and name, or the
    folder's name.

    With `root` a COCO file's images are left in place: files are neither read nor copied, sizes are
    those of the records, and 50,000 images go into a transaction.

    `checking(done, total)` reports bytes while a COCO file is indexed, `progress(done, total)`
    images, at the start and after each transaction.

    Raises ImportRefused, before anything is written, if the source as a whole cannot be read, and
    while a data set is removed.
    """
    path = Path(path)
    if root is not None and path.is_dir():
        raise ImportRefused(
            str(path),
            "Images that are left in place need their sizes, which a folder doesn't give. Import a "
            "COCO file with widths and heights, or let the images be copied.",
        )
    return _import(
        lambda refuse: open_source(path, refuse, choices, checking),
        dataset,
        root,
        progress,
        on_refusal,
    )


def look_through(
    path: Path, choices: ImportChoices
) -> tuple[Source, ImportReport, Iterator[Batch]]:
    """Read a data set as `import_images` does, but decode, store and write nothing: its source, the
    report that counts what is refused, and the other images, batch by batch. Raises ImportRefused.
    """
    report = ImportReport(dataset="")
    refusals = _Refusals(report, None)
    source = open_source(path, refusals.take, choices)
    report.dataset, report.unused = source.default_dataset(), source.unused

    def batches() -> Iterator[Batch]:
        for batch in images_read(
            images=source.images(),
            dataset="",
            root=source.root,
            refuse=refusals.take,
            store=image_facts,
        ):
            refusals.report()
            yield batch
        refusals.report()

    return source, report, batches()


def import_listed(
    *, root: Path, records: list[ImageRecord], dataset: str, on_refusal: OnRefusal | None = None
) -> ImportReport:
    """Import the images of `records`, with files below the folder `root`, as `import_images`."""
    return _import(
        lambda refuse: _ListedSource(root, records, dataset), dataset, None, None, on_refusal
    )


class Source(Protocol):
    """A data set to import."""

    root: Path

    @property
    def unused(self) -> list[str]:
        """The names of the columns, or of keys of a COCO file, that it doesn't read."""

    @property
    def highest_id(self) -> int:
        """The highest preferred id of an image, or -1."""

    def default_dataset(self) -> str:
        """Return the data set's name, the same on every run."""

    def species(self) -> list[SpeciesRecord]:
        """Return the species."""

    def count(self) -> int:
        """Count the image records."""

    def images(self) -> Iterator[ImageRecord]:
        """Yield the valid images."""


@dataclass(slots=True)
class _ListedSource:
    """Records in memory."""

    root: Path
    records: list[ImageRecord]
    dataset: str
    unused: list[str] = field(default_factory=list)

    @property
    def highest_id(self) -> int:
        return max((r.preferred_id for r in self.records if r.preferred_id is not None), default=-1)

    def default_dataset(self) -> str:
        return self.dataset

    def species(self) -> list[SpeciesRecord]:
        return []

    def count(self) -> int:
        return len(self.records)

    def images(self) -> Iterator[ImageRecord]:
        return iter(self.records)


def removal_goes_on() -> bool:
    """Whether the removal of a data set has begun and isn't finished."""
    return Job.objects.filter(kind=REMOVAL_KIND, state__in=Job.UNFINISHED).exists()


@contextmanager
def _no_removal(source: Source) -> Iterator[None]:
    """Keep removals from beginning meanwhile. Raises ImportRefused while one goes on."""
    with try_session_lock(lock_key("importing"), shared=True):
        with transaction.atomic():
            # A removal that doesn't see the lock above has its job once this is free.
            transaction_lock(lock_key("job_kind"))
            if removal_goes_on():
                raise ImportRefused(str(source.root), BEING_REMOVED)
        yield


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
    report.dataset, report.unused = dataset or source.default_dataset(), source.unused
    if len(report.dataset) > 100:
        raise ImportRefused(
            str(source.root),
            "The data set's name is longer than 100 characters. Give a shorter one with --dataset.",
        )
    if has_controls(report.dataset):
        raise ImportRefused(
            str(source.root),
            f"The data set's name holds control characters: {report.dataset!r}. Give another with "
            "--dataset.",
        )
    if isinstance(source, TableSource):
        if source.questions:
            question = source.questions[0]
            answer = (
                "Say so with --day-first or --month-first."
                if question.about == "day_first"
                else f"Call that one {question.about}."
            )
            raise ImportRefused(str(source.path), f"{question.text} {answer} Nothing was imported.")
        report.unused, report.columns = source.unused, source.used
    with _no_removal(source):
        if isinstance(source, TableSource):
            custom_fields_create(source.custom_fields)
        return _store(source, report, root, progress, refusals)


def _store(
    source: Source,
    report: ImportReport,
    root: ImageRoot | None,
    progress: Progress | None,
    refusals: _Refusals,
) -> ImportReport:
    mark = DatasetMark.objects.filter(dataset=report.dataset).first()
    species = species_upsert(records=source.species())
    ids = {name: stored_species.pk for name, stored_species in species.items()}
    if root is None:
        images = images_read(
            images=source.images(),
            dataset=report.dataset,
            root=source.root,
            refuse=refusals.take,
        )
        batches = _prepare(_counted(images, report), ids, None, mark, at_once=1)
    else:
        images = images_in_place(images=source.images(), refuse=refusals.take)
        batches = _in_advance(_prepare(images, ids, root.pk, mark, at_once=BATCH_IN_PLACE))
    total, done = source.count(), 0
    if progress:
        progress(0, total)
    fresh = not Image.objects.filter(dataset=report.dataset).exists()
    for count, rows, preferred in batches:
        stored = image_rows_store(
            dataset=report.dataset,
            rows=rows,
            preferred=preferred,
            above=source.highest_id,
            fresh=fresh,
        )
        fresh = stored.fresh
        report.added += stored.added
        report.updated += stored.updated
        report.skipped += stored.skipped
        refusals.report()
        done += count
        if progress:
            progress(done, total)
    refusals.report()
    if report.added + report.updated >= _ANALYZED_FROM:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE retrieval_image")
    return report


def open_source(
    path: Path, refuse: OnRefusal, choices: ImportChoices, checking: Progress | None = None
) -> Source:
    """Open a data set: a folder, a table or a COCO file. Raises ImportRefused."""
    if path.is_dir() and not split_tables(path):
        return FolderSource(path, refuse, choices)
    if path.is_dir() or (path.is_file() and path.suffix.lower() in SUFFIXES):
        return TableSource(path, refuse, choices)
    if path.is_file():
        return CocoSource(path, refuse, checking)
    if path.exists():
        raise ImportRefused(str(path), "This is neither a file nor a folder.")
    raise ImportRefused(str(path), "There is no such file or folder.")


def custom_fields_create(kinds: Mapping[str, str]) -> None:
    """Create the custom fields of these names and kinds that there aren't; others stay."""
    CustomField.objects.bulk_create(
        [CustomField(name=name, kind=kind) for name, kind in kinds.items()], ignore_conflicts=True
    )


class _Refusals:
    """Collects refusals from all threads, and reports them on the thread that created it."""

    def __init__(self, report: ImportReport, on_refusal: OnRefusal | None) -> None:
        self._result = report
        self._on_refusal = on_refusal
        self._thread = threading.get_ident()
        self._waiting: deque[Refusal] = deque()

    def take(self, refusal: Refusal) -> None:
        self._waiting.append(refusal)
        if threading.get_ident() == self._thread:
            self.report()

    def report(self) -> None:
        while self._waiting:
            refusal = self._waiting.popleft()
            self._result.refuse(refusal)
            if self._on_refusal:
                self._on_refusal(refusal)


def _counted(batches: Iterator[Batch], report: ImportReport) -> Iterator[Batch]:
    for count, images in batches:
        hashes = [facts[0] for _, facts in images]
        others = Image.objects.filter(sha256__in=hashes).exclude(dataset=report.dataset)
        known = set(others.values_list("sha256", flat=True))
        report.copies += sum(sha256 in known for sha256 in hashes)
        report.understood.take_all(record for record, _ in images)
        yield count, images


_PreparedBatch = tuple[int, list[bytes], list[int | None]]


def _prepare(
    batches: Iterator[Batch],
    species: dict[str, int],
    root_id: int | None,
    mark: DatasetMark | None,
    *,
    at_once: int,
) -> Iterator[_PreparedBatch]:
    """Yield (number of records, rows, preferred ids) of batches with `at_once` records together, as
    the data set's mark has them.
    """
    total, rows, preferred = 0, list[bytes](), list[int | None]()
    for count, images in batches:
        total += count
        rows += [
            image_row(
                marked(record, mark) if mark else record,
                facts,
                species.get(record.scientific_name),
                root_id,
            )
            for record, facts in images
        ]
        preferred += [record.preferred_id for record, _ in images]
        if total >= at_once:
            yield total, rows, preferred
            total, rows, preferred = 0, [], []
    if total:
        yield total, rows, preferred


def _in_advance(batches: Iterator[_PreparedBatch]) -> Iterator[_PreparedBatch]:
    """Yield each batch, and have a thread prepare the next one meanwhile."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        following = thread.submit(next, batches, None)
        while (batch := following.result()) is not None:
            following = thread.submit(next, batches, None)
            yield batch
