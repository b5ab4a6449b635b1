"""Existing benchmarks as releases, on which runs are scored like on those made here."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction

from core.jobs.models import Job
from core.jobs.services import job_create
from releases import selectors
from releases.importing.import_snapshot import (
    IMAGES_AT_A_TIME,
    STEPS,
    CorpusImages,
    ImageMatches,
    images_here,
    snapshot_import,
)
from releases.importing.layout import Layout
from releases.importing.layout_files import layout_read
from releases.making.progress import Progress, Report
from releases.making.services import release_claim, release_fill
from releases.models import Release
from retrieval.corpus.models import Image
from retrieval.embedding.models import EmbeddingModel
from retrieval.importing.records import ImageRecord
from retrieval.importing.services import OnRefusal, import_listed
from retrieval.ranking.selectors import corpus_counts

JOB_KIND: Final = "import_benchmark"
#: Instead of a folder of images: the ids are of a corpus that isn't here.
NO_IMAGES: Final = "none"


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """The result of an import."""

    release: Release
    rows: int
    """Rows of the annotations."""
    duplicates: int
    """Rows that repeated a pair."""
    images: int
    """Images that the files name."""
    matches: ImageMatches
    """How many of them are in the corpus."""
    added: int
    """Images that were brought in."""


def benchmark_import(
    *,
    directory: Path,
    name: str = "",
    images: Path | None = None,
    use_corpus: bool = True,
    data_set: str = "",
    rerank_model: str = "",
    test_labels: str = "",
    new_only: bool = False,
    created_by: Any = None,
    report: Report | None = None,
    on_refusal: OnRefusal | None = None,
) -> BenchmarkReport:
    """Make a release of a benchmark in INQUIRE's layout; see `layout_files`.

    `name` is by default the directory's; a name that was imported before gets its next version,
    unless `new_only` refuses it. An image of the corpus is the benchmark's if it has its id, and
    its path or its data set, named by `data_set`, is the benchmark's too; the release then has the
    corpus's details of it. All other ids are those of images that aren't here, also where the
    corpus has an image with such an id. Without `use_corpus` no image is the corpus's.
    `images` is the folder that the paths start from: images that the corpus doesn't have are
    brought in first, under the benchmark's ids; `on_refusal` gets those that can't be.
    `rerank_model` is the name of a model whose top 100 of the corpus are the fixed lists, instead
    of those in the files; all images of the benchmark must be in the corpus, and the whole corpus
    embedded with that model.
    `test_labels` is "hidden" or "public", by default public where the files name relevant images
    of test queries, unless they are of a release made here that hides them.

    Nothing is written unless all files are right. Raises LayoutRefused with every error,
    ValidationError for the name, the data set and the model, OSError for what can't be read, and
    JobFailed for a model that can't be loaded.
    """
    corpus_images = CorpusImages(use_corpus, data_set)
    layout = _layout(directory, images, rerank_model, corpus_images)
    options = {"rerank_model": rerank_model, "test_labels": test_labels}
    release = _claim(layout, name or directory.resolve().name, created_by, new_only, options)
    return _fill(release, layout, images, corpus_images, report=report, on_refusal=on_refusal)


@transaction.atomic
def benchmark_import_begin(
    *,
    directory: Path,
    name: str = "",
    images: Path | None = None,
    use_corpus: bool = True,
    data_set: str = "",
    rerank_model: str = "",
    test_labels: str = "",
    new_only: bool = False,
    created_by: Any = None,
) -> Release:
    """Begin an import by a worker, which must see the directory too; as `benchmark_import`.

    The files are read first, so that wrong ones are refused here.
    """
    corpus_images = CorpusImages(use_corpus, data_set)
    layout = _layout(directory, images, rerank_model, corpus_images)
    options = {"rerank_model": rerank_model, "test_labels": test_labels}
    release = _claim(layout, name or directory.resolve().name, created_by, new_only, options)
    release.job = job_create(
        kind=JOB_KIND,
        params={
            "release": release.pk,
            "directory": str(directory.resolve()),
            "images": str(images.resolve()) if images else "",
            "use_corpus": use_corpus,
            "data_set": data_set,
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
    layout = layout_read(Path(job.params["directory"]))
    images = Path(folder) if folder else None
    corpus_images = CorpusImages(job.params["use_corpus"], job.params["data_set"])
    return _fill(release, layout, images, corpus_images, job=job)


def _layout(
    directory: Path, images: Path | None, rerank_model: str, corpus_images: CorpusImages
) -> Layout:
    """The benchmark in a directory. ValidationError unless the corpus has what the import needs:
    images of the named data set, unless the import brings them in; and every image of the
    benchmark, embedded with the model, where `rerank_model` makes the fixed lists."""
    name = corpus_images.data_set
    if name and images is None and not Image.objects.filter(dataset=name).exists():
        message = f"No image of the corpus is from a data set called {name!r}."
        raise ValidationError({"data_set": message})
    layout = layout_read(directory)
    model = EmbeddingModel.objects.filter(name=rerank_model).first()
    # An unknown model is refused with the release's other options.
    if model is None:
        return layout
    matches = images_here(layout, corpus_images)
    unembedded = corpus_counts(model=model).unembedded
    message = ""
    if not matches.whole:
        message = (
            f"{matches.absent} of the benchmark's {matches.named} images aren't in the corpus; "
            "fixed lists for re-ranking need them all, so bring them in and embed them first."
        )
    elif unembedded:
        message = (
            f"{unembedded} images of the corpus aren't embedded with {rerank_model!r}; embed them "
            "first."
        )
    if message:
        raise ValidationError({"rerank_model": message})
    return layout


def _claim(
    layout: Layout, name: str, created_by: Any, new_only: bool, options: dict[str, Any]
) -> Release:
    if new_only and selectors.release_find(name=name) is not None:
        raise ValidationError({"name": f"A benchmark {name.strip()!r} is here already."})
    options["include_images"] = bool(layout.header and layout.header.include_images)
    if not options["test_labels"]:
        own = layout.header.test_labels if layout.header else ""
        shipped = layout.ships_test_labels and own != Release.TestLabels.HIDDEN
        options["test_labels"] = Release.TestLabels.PUBLIC if shipped else Release.TestLabels.HIDDEN
    return release_claim(
        name=name, created_by=created_by, options=options, origin=Release.Origin.IMPORTED
    )


def _fill(
    release: Release,
    layout: Layout,
    folder: Path | None,
    corpus_images: CorpusImages,
    *,
    report: Report | None = None,
    on_refusal: OnRefusal | None = None,
    job: Job | None = None,
) -> BenchmarkReport:
    dataset = corpus_images.data_set or release.name
    added = _bring_in(layout, folder, dataset, on_refusal) if folder else 0
    matches = ImageMatches()

    def take(directory: Path, progress: Progress) -> None:
        snapshot_import(release, layout, directory, corpus_images, matches, progress)

    release = release_fill(release=release, steps=STEPS, take=take, job=job, report=report)
    return BenchmarkReport(
        release=release,
        rows=len(layout.annotations),
        duplicates=layout.duplicates,
        images=len(layout.images),
        matches=matches,
        added=added,
    )


def _bring_in(layout: Layout, folder: Path, dataset: str, on_refusal: OnRefusal | None) -> int:
    """Bring in images that the corpus doesn't have, under their ids; returns how many."""
    added = 0
    images = layout.paths()
    while part := dict(islice(images, IMAGES_AT_A_TIME)):
        taken = set(Image.objects.filter(pk__in=part).values_list("pk", flat=True))
        records = [
            ImageRecord(
                source_id=str(image_id),
                preferred_id=image_id,
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
