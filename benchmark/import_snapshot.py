"""The snapshot of an existing benchmark: what its files tell, with what the corpus knows of its
images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from heapq import merge
from itertools import islice
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Final

from benchmark import selectors
from benchmark.layout_store import Effort, Layout, LayoutQuery
from benchmark.models import Release
from benchmark.selectors.images import Corpus
from benchmark.services.progress import Progress
from benchmark.services.snapshots import CONSENSUS_RULE as OWN_RULE
from benchmark.snapshot import FixedImage, Header, SnapshotImage, SnapshotQuery, SnapshotWriter
from benchmark.software import software
from retrieval.encoders import ModelSpecError
from retrieval.jobs import JobFailed
from retrieval.models import EmbeddingModel

CONSENSUS_RULE: Final = (
    "Imported: the benchmark's files name the relevant images of each query. Which others were "
    "judged they don't tell, so every other image counts as not relevant."
)
JUDGED_RULE: Final = (
    "Imported: the benchmark's files name the relevant images of each query, and its judgments "
    f"agree with them by this rule: {OWN_RULE}"
)
#: The files' fixed lists don't say whose order they are in.
UNNAMED_MODEL: Final = "a model that the benchmark's files don't name"

QUERIES_STEP: Final = "Queries"
PAIRS_STEP: Final = "Judged pairs"
FIXED_STEP: Final = "Fixed lists for re-ranking"
IMAGES_STEP: Final = "Images"
CORPUS_STEP: Final = "Corpus fingerprint"
STEPS: Final = (QUERIES_STEP, PAIRS_STEP, FIXED_STEP, IMAGES_STEP, CORPUS_STEP)
IMAGES_AT_A_TIME: Final = 5000
_NOTHING: Final = Corpus(images=0, species=0, fingerprint="")
_NO_EFFORT: Final = Effort(annotators=0, seconds=0.0)


@dataclass(slots=True)
class ImagesFound:
    """How many of the images are in the corpus."""

    named: int = 0
    """By the benchmark's files."""
    here: int = 0
    """Of these, images of the corpus."""
    others: int = 0
    """Of these, ids that the corpus has for another picture."""

    @property
    def whole(self) -> bool:
        """Whether the corpus has every image of the benchmark."""
        return self.named > 0 and self.here == self.named


def snapshot_import(
    release: Release,
    layout: Layout,
    directory: Path,
    use_corpus: bool,
    found: ImagesFound,
    progress: Progress,
) -> None:
    """Write the snapshot of a benchmark that is imported into an empty directory; `found` counts.

    The fixed lists are those of the release's `rerank_model`, if it has one, else those of the
    files. JobFailed: a list can't be made.
    """
    writer = SnapshotWriter(directory)
    efforts = layout.efforts()
    with progress.step(QUERIES_STEP, len(layout.queries)):
        writer.table("queries", (_query(one, layout, efforts) for one in layout.queries))
    with progress.step(PAIRS_STEP, layout.pair_count) as count, writer.rows("pairs") as write:
        for pair in layout.pairs():
            write(pair)
            count(1)
    writer.table("judgments", layout.judgments())
    model = EmbeddingModel.objects.filter(name=release.options.get("rerank_model", "")).first()
    with selectors.snapshot():
        listed: set[int] = set()
        with (
            progress.step(FIXED_STEP, len(layout.queries)) as count,
            writer.rows("fixed") as write,
        ):
            for one in _ranked(layout, model) if model else layout.fixed():
                write(one)
                listed.add(one.image_id)
                count(one.rank == 1)
        with (
            progress.step(IMAGES_STEP, layout.image_count) as count,
            writer.rows("images") as write,
        ):
            for image in _images_and(listed, layout, use_corpus, found):
                write(image)
                count(1)
        if model and not found.whole:
            raise JobFailed("Images of the benchmark have left the corpus meanwhile.")
        with progress.step(CORPUS_STEP):
            # Of a corpus that has only some of the images, nothing follows for the benchmark.
            corpus = selectors.corpus() if found.whole else _NOTHING
    judged = layout.judgment_count > 0
    told = layout.header
    rerank_model = model.name if model else ""
    if not rerank_model and layout.has_fixed:
        rerank_model = told.rerank_model if told else UNNAMED_MODEL
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
            models=told.models if told else [],
            rerank_model=rerank_model,
            consensus=JUDGED_RULE if judged else CONSENSUS_RULE,
            annotators=layout.annotator_count,
        )
    )


def images_here(layout: Layout) -> ImagesFound:
    """How many of the benchmark's images are in the corpus."""
    found = ImagesFound()
    for _ in _images(layout, True, found):
        pass
    return found


def _ranked(layout: Layout, model: EmbeddingModel) -> Iterator[FixedImage]:
    texts = [(one.query.query_id, one.query.query_text) for one in layout.queries]
    try:
        for fixed in selectors.fixed_lists(model, texts):
            yield from fixed
    except ModelSpecError as error:
        raise JobFailed(f"The fixed lists for re-ranking can't be made: {error}") from error


def _query(one: LayoutQuery, layout: Layout, efforts: dict[int, Effort]) -> SnapshotQuery:
    query = one.query
    effort = efforts.get(query.query_id, _NO_EFFORT)
    own = layout.own_queries.get(query.query_id)
    return SnapshotQuery(
        query_id=query.query_id,
        text=query.query_text,
        supercategory=query.supercategory,
        category=query.category,
        iconic_group=query.iconic_group,
        split=query.split,
        # The query files of a release have INQUIRE's columns alone.
        species=list(query.species) or (own.species if own else []),
        guidelines=query.guidelines or (own.guidelines if own else ""),
        scientific_terms=query.scientific_terms or (own.scientific_terms if own else False),
        model=own.model if own else "",
        list_depth=own.list_depth if own else 0,
        list_size=own.list_size if own else 0,
        list_total=own.list_total if own else 0,
        list_checksum=own.list_checksum if own else "",
        annotators=effort.annotators,
        seconds=effort.seconds,
        index=query.index,
        row=one.row,
    )


def _images_and(
    listed: set[int], layout: Layout, use_corpus: bool, found: ImagesFound
) -> Iterator[SnapshotImage]:
    """Every image of the benchmark, and of the corpus those that a list names besides; by id."""
    named = _images(layout, use_corpus, found)
    more = selectors.released_images(sorted(listed))
    last = -1
    for image in merge(named, more, key=attrgetter("image_id")):
        # The merge is stable, so that the benchmark's own comes first of two.
        if image.image_id != last:
            yield image
        last = image.image_id


def _images(layout: Layout, use_corpus: bool, found: ImagesFound) -> Iterator[SnapshotImage]:
    """Every image by id, with what the corpus tells of those that it has."""
    images = layout.images()
    while part := dict(islice(images, IMAGES_AT_A_TIME)):
        found.named += len(part)
        known = {}
        if use_corpus:
            known = {one.image_id: one for one in selectors.released_images(list(part))}
        told = layout.told(min(part), max(part))
        for image_id, path in part.items():
            image = known.get(image_id)
            more = told.get(image_id, {})
            if image is not None and _same(path, image.file_name):
                found.here += 1
                # What the benchmark itself tells, so that its files come out as they went in.
                yield replace(image, file_name=path or image.file_name, **more)
            else:
                found.others += image is not None
                yield replace(_unknown(image_id, path), **more)


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
