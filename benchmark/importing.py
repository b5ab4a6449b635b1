"""Existing benchmarks as releases, on which runs are scored like on those made here."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction

from benchmark import selectors
from benchmark.inquire_layout import Layout, LayoutQuery, layout_read
from benchmark.models import Release
from benchmark.selectors.images import Corpus
from benchmark.services import release_claim, release_fill
from benchmark.services.progress import Progress, Report
from benchmark.snapshot import Header, Pair, SnapshotImage, SnapshotQuery, SnapshotWriter
from benchmark.software import software
from retrieval.importing.records import ImageRecord
from retrieval.models import Image, Job
from retrieval.services.importing import OnRefusal, import_listed
from retrieval.services.jobs import job_create

JOB_KIND: Final = "import_benchmark"
#: Instead of a folder of pictures: the ids are of a corpus that isn't here.
NO_IMAGES: Final = "none"

CONSENSUS_RULE: Final = (
    "Imported: the benchmark's files name the relevant images of each query. Which others were "
    "judged they don't tell, so every other image counts as not relevant."
)

QUERIES_STEP: Final = "Queries"
PAIRS_STEP: Final = "Relevant pairs"
IMAGES_STEP: Final = "Images"
CORPUS_STEP: Final = "Corpus fingerprint"
STEPS: Final = (QUERIES_STEP, PAIRS_STEP, IMAGES_STEP, CORPUS_STEP)
_IMAGES_AT_A_TIME: Final = 5000
_NOTHING: Final = Corpus(images=0, species=0, fingerprint="")


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """What an import found."""

    release: Release
    rows: int
    """Of the annotations."""
    duplicates: int
    """Rows that repeated a pair."""
    images: int
    """That the pairs name."""
    here: int
    """Of these, images of the corpus."""
    others: int
    """Of these, ids that the corpus has for another picture."""
    added: int
    """Pictures that were brought in."""


@dataclass(slots=True)
class _Images:
    """How many of the images are in the corpus."""

    named: int = 0
    here: int = 0
    others: int = 0


def benchmark_import(
    *,
    directory: Path,
    name: str = "",
    images: Path | None = None,
    use_corpus: bool = True,
    new_only: bool = False,
    created_by: Any = None,
    report: Report | None = None,
    on_refusal: OnRefusal | None = None,
) -> BenchmarkReport:
    """Make a release of a benchmark in INQUIRE's layout; see `inquire_layout`.

    `name` is by default the directory's; a name that was imported before gets its next version,
    unless `new_only` refuses it. An image of the corpus is that of the benchmark if it has its id
    and, where the benchmark tells a path, a file of the same name; then the release tells what is
    known of it. Without `use_corpus` none is: the ids are of another corpus. `images` is a folder
    below which the paths are found: pictures that the corpus doesn't have are brought in first,
    under the benchmark's ids; `on_refusal` hears of those that can't be.

    Nothing is written unless all files are right. Raises LayoutRefused with every error,
    ValidationError for the name, and OSError for what can't be read.
    """
    with _read(directory) as layout:
        release = _claim(name or directory.resolve().name, created_by, new_only)
        return _fill(release, layout, images, use_corpus, report, on_refusal, None)


@transaction.atomic
def benchmark_import_begin(
    *,
    directory: Path,
    name: str = "",
    images: Path | None = None,
    use_corpus: bool = True,
    new_only: bool = False,
    created_by: Any = None,
) -> Release:
    """Begin an import that a worker does, which must see the directory too; as `benchmark_import`.

    The files are read first, so that wrong ones are refused here.
    """
    with _read(directory):
        release = _claim(name or directory.resolve().name, created_by, new_only)
    release.job = job_create(
        kind=JOB_KIND,
        params={
            "release": release.pk,
            "directory": str(directory.resolve()),
            "images": str(images.resolve()) if images else "",
            "use_corpus": use_corpus,
        },
        created_by=created_by,
        title=f"Import of {release}",
    )
    release.save(update_fields=["job"])
    return release


def benchmark_import_run(*, job: Job) -> BenchmarkReport:
    """Do the import of a job. Raises as `benchmark_import`."""
    release = Release.objects.get(pk=job.params["release"])
    folder = job.params["images"]
    with _read(Path(job.params["directory"])) as layout:
        images = Path(folder) if folder else None
        return _fill(release, layout, images, job.params["use_corpus"], None, None, job)


@contextmanager
def _read(directory: Path) -> Iterator[Layout]:
    scratch = Path(settings.VAR_DIR) / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=scratch, prefix="import-") as folder,
        layout_read(directory, database=Path(folder) / "benchmark.sqlite") as layout,
    ):
        yield layout


def _claim(name: str, created_by: Any, new_only: bool) -> Release:
    if new_only and selectors.release_find(name=name) is not None:
        raise ValidationError({"name": f"A benchmark {name.strip()!r} is here already."})
    # Whose top 100 would be ranked isn't known, and no picture's bytes go along.
    options = {"rerank_model": "", "include_images": False}
    return release_claim(
        name=name, created_by=created_by, options=options, origin=Release.Origin.IMPORTED
    )


def _fill(
    release: Release,
    layout: Layout,
    folder: Path | None,
    use_corpus: bool,
    report: Report | None,
    on_refusal: OnRefusal | None,
    job: Job | None,
) -> BenchmarkReport:
    added = _bring_in(layout, folder, release.name, on_refusal) if folder else 0
    found = _Images()

    def take(directory: Path, progress: Progress) -> None:
        _snapshot(release, layout, directory, use_corpus, found, progress)

    release = release_fill(release=release, steps=STEPS, take=take, job=job, report=report)
    return BenchmarkReport(
        release=release,
        rows=layout.rows,
        duplicates=layout.duplicates,
        images=layout.image_count,
        here=found.here,
        others=found.others,
        added=added,
    )


def _bring_in(layout: Layout, folder: Path, dataset: str, on_refusal: OnRefusal | None) -> int:
    """Bring pictures in that the corpus doesn't have, under their ids; how many."""
    added = 0
    images = layout.images()
    while part := dict(islice(images, _IMAGES_AT_A_TIME)):
        taken = set(Image.objects.filter(pk__in=part).values_list("pk", flat=True))
        records = [
            ImageRecord(
                source_id=str(image_id),
                wanted_id=image_id,
                file_name=path,
                record=f"image {image_id}",
            )
            for image_id, path in part.items()
            if path and image_id not in taken
        ]
        added += import_listed(
            root=folder, records=records, dataset=dataset, on_refusal=on_refusal
        ).added
    return added


def _snapshot(
    release: Release,
    layout: Layout,
    directory: Path,
    use_corpus: bool,
    found: _Images,
    progress: Progress,
) -> None:
    writer = SnapshotWriter(directory)
    with progress.step(QUERIES_STEP, len(layout.queries)):
        writer.table("queries", map(_query, layout.queries))
    with progress.step(PAIRS_STEP, layout.pair_count) as count, writer.rows("pairs") as write:
        for query_id, image_id in layout.pairs():
            write(Pair(query_id=query_id, image_id=image_id, relevant=True, votes=0, rank=None))
            count(1)
    writer.table("judgments", [])
    writer.table("fixed", [])
    with selectors.snapshot():
        with (
            progress.step(IMAGES_STEP, layout.image_count) as count,
            writer.rows("images") as write,
        ):
            for image in _images(layout, use_corpus, found):
                write(image)
                count(1)
        with progress.step(CORPUS_STEP):
            # Of a corpus that has only some of the images, nothing follows for the benchmark.
            whole = found.named > 0 and found.here == found.named
            corpus = selectors.corpus() if whole else _NOTHING
    writer.header(
        Header(
            name=release.name,
            version=release.version,
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            made_by=release.created_by.get_username() if release.created_by else "",
            software=software(),
            origin=release.origin,
            corpus_images=corpus.images,
            corpus_species=corpus.species,
            corpus_fingerprint=corpus.fingerprint,
            consensus=CONSENSUS_RULE,
        )
    )


def _query(one: LayoutQuery) -> SnapshotQuery:
    query = one.query
    return SnapshotQuery(
        query_id=query.query_id,
        text=query.query_text,
        supercategory=query.supercategory,
        category=query.category,
        iconic_group=query.iconic_group,
        split=query.split,
        species=list(query.species),
        guidelines=query.guidelines,
        scientific_terms=query.scientific_terms,
        model="",
        list_depth=0,
        list_size=0,
        list_total=0,
        list_checksum="",
        annotators=0,
        seconds=0.0,
        index=query.index,
        row=one.row,
    )


def _images(layout: Layout, use_corpus: bool, found: _Images) -> Iterator[SnapshotImage]:
    """Every image by id, with what the corpus tells of those that it has."""
    images = layout.images()
    while part := dict(islice(images, _IMAGES_AT_A_TIME)):
        found.named += len(part)
        known = {}
        if use_corpus:
            known = {one.image_id: one for one in selectors.released_images(list(part))}
        for image_id, path in part.items():
            image = known.get(image_id)
            if image is not None and _same(path, image.file_name):
                found.here += 1
                # The benchmark's own path, so that its files come out as they went in.
                yield replace(image, file_name=path or image.file_name)
            else:
                found.others += image is not None
                yield _unknown(image_id, path)


def _same(path: str, file_name: str) -> bool:
    """Whether a benchmark's path may be that of a corpus's image; without one, its id says all."""
    return not path or PurePosixPath(path).name == PurePosixPath(file_name).name


def _unknown(image_id: int, path: str) -> SnapshotImage:
    return SnapshotImage(
        image_id=image_id,
        dataset="",
        source_id="",
        file_name=path,
        sha256="",
        width=0,
        height=0,
        scientific_name="",
        vernacular_name="",
        kingdom="",
        phylum="",
        class_name="",
        order="",
        family="",
        genus="",
        iconic_group="",
        license="",
        license_url="",
        rights_holder="",
        observed_at="",
        latitude=None,
        longitude=None,
        location_uncertainty=None,
    )
