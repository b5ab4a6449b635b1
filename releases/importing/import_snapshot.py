"""The snapshot of an existing benchmark: what its files say, with what the corpus knows of its
images."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from heapq import merge
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any, Final

from core.jobs.kinds import JobFailed
from core.sql import repeatable_read
from releases.importing.layout import Effort, Layout, LayoutQuery
from releases.making import fixed_lists
from releases.making.images import Corpus, released_images, web_address
from releases.making.images import corpus as corpus_now
from releases.making.progress import Progress
from releases.making.take_snapshot import CONSENSUS_RULE as OWN_RULE
from releases.making.take_snapshot import GRADES_RULE
from releases.making.takedown import images_write
from releases.models import Release
from releases.snapshot.snapshot import (
    TABLES,
    FixedImage,
    Header,
    Snapshot,
    SnapshotImage,
    SnapshotQuery,
    SnapshotWriter,
    software,
)
from retrieval.corpus.models import ImageTakedown
from retrieval.embedding.models import EmbeddingModel
from retrieval.encoding.model_specs import ModelSpecError

CONSENSUS_RULE: Final = (
    "Imported: the benchmark's files name the relevant images of each query. Which others were "
    "judged they don't tell, so every other image counts as not relevant."
)
JUDGED_RULE: Final = (
    "Imported: the benchmark's files name the relevant images of each query, and its judgments "
    f"agree with them by this rule: {OWN_RULE}"
)
QRELS_RULE: Final = (
    "Imported: the benchmark's files say of each judged image whether it is relevant to a query; "
    "of graded relevances, those above 0 are."
)
GRADED_RULE: Final = (
    "Imported: the benchmark's files name the relevant images of each query, and the grades that "
    "people gave: definitely, partly, mostly not, definitely not. A pair's grade is the median of "
    "those on the side of its label, rounded down; a relevant image without one counts as "
    "definitely relevant."
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


@dataclass(frozen=True, slots=True)
class CorpusImages:
    """Which images of the corpus may be the benchmark's: those with its id, where its path or
    the data set says that it is the same."""

    used: bool = True
    """False: none of them."""
    data_set: str = ""
    """The data set whose ids the benchmark's image ids are; empty where the user named none."""


@dataclass(slots=True)
class ImagesFound:
    """How many of the benchmark's images are in the corpus, and what says so."""

    by_path: int = 0
    by_data_set: int = 0
    absent: int = 0
    """Not in the corpus, as far as the files and the data set's name say."""
    others: int = 0
    """Of those, ids that the corpus has for another image."""

    @property
    def named(self) -> int:
        """By the benchmark's files."""
        return self.here + self.absent

    @property
    def here(self) -> int:
        """Images of the corpus."""
        return self.by_path + self.by_data_set

    @property
    def whole(self) -> bool:
        """Whether the corpus has every image of the benchmark."""
        return self.here > 0 and not self.absent


def snapshot_import(
    release: Release,
    layout: Layout,
    directory: Path,
    corpus_images: CorpusImages,
    found: ImagesFound,
    progress: Progress,
) -> None:
    """Write the snapshot of a benchmark that is imported into an empty directory; `found` counts.

    The fixed lists are those of the release's `rerank_model`, if it has one, else those of the
    files. Without one, a release made by this application, unchanged, keeps its snapshot's tables.
    JobFailed: a list can't be made.
    """
    if layout.whole and not release.options.get("rerank_model"):
        _take_over(release, layout, layout.whole, directory, corpus_images, found, progress)
        return
    writer = SnapshotWriter(directory)
    efforts = layout.efforts()
    with progress.step(QUERIES_STEP, len(layout.queries)):
        writer.table("queries", (_query(one, layout, efforts) for one in layout.queries))
    with progress.step(PAIRS_STEP):
        writer.arrow("pairs", layout.pairs)
        writer.arrow("judgments", layout.judgments)
    model = EmbeddingModel.objects.filter(name=release.options.get("rerank_model", "")).first()
    with repeatable_read():
        listed: set[int] = set()
        with progress.step(FIXED_STEP, len(layout.queries)) as count:
            if model is None:
                writer.arrow("fixed", layout.fixed)
            else:
                with writer.rows("fixed") as write:
                    for one in _ranked(layout, model):
                        write(one)
                        listed.add(one.image_id)
                        count(one.rank == 1)
        with (
            progress.step(IMAGES_STEP, len(layout.images)) as count,
            writer.rows("images") as write,
        ):
            for image in _images_and(listed, layout, corpus_images, found):
                write(image)
                count(1)
        if model and not found.whole:
            raise JobFailed("Images of the benchmark have left the corpus meanwhile.")
        with progress.step(CORPUS_STEP):
            facts = _facts(release, found)
    own = layout.header
    rerank_model = model.name if model else ""
    if not rerank_model and len(layout.fixed):
        rerank_model = own.rerank_model if own else UNNAMED_MODEL
    writer.header(
        Header(
            **facts,
            models=own.models if own else [],
            rerank_model=rerank_model,
            consensus=_rule(layout),
            annotators=layout.annotators or None,
            negatives_known={one.query.split for one in layout.queries} <= layout.judged_splits,
        )
    )


def _take_over(
    release: Release,
    layout: Layout,
    whole: Snapshot,
    directory: Path,
    corpus_images: CorpusImages,
    found: ImagesFound,
    progress: Progress,
) -> None:
    """Copy the tables of a snapshot, without what was taken down here of its images."""
    for title in (QUERIES_STEP, PAIRS_STEP, FIXED_STEP):
        with progress.step(title):
            pass
    with progress.step(IMAGES_STEP):
        for path in filter(Path.exists, map(whole.path, TABLES)):
            shutil.copyfile(path, directory / path.name)
        ids = layout.images["image_id"].to_pylist()
        gone = set(ImageTakedown.objects.values_list("pk", flat=True)).intersection(ids)
        if gone:
            table = whole.path("images")
            images_write(table, directory / table.name, sorted(gone))
        _images_count(layout, corpus_images, found)
    with progress.step(CORPUS_STEP):
        facts = _facts(release, found)
    own = whole.header
    if own.origin != Release.Origin.IMPORTED:
        facts["consensus"] = _rule(layout)
    SnapshotWriter(directory).header(replace(own, **facts))


def _facts(release: Release, found: ImagesFound) -> dict[str, Any]:
    """What the header says of the import itself."""
    # Of a corpus that has only some of the images, nothing follows for the benchmark.
    corpus = corpus_now() if found.whole else _NOTHING
    return {
        "name": release.name,
        "version": release.version,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "made_by": release.created_by.get_username() if release.created_by else "",
        "software": software(),
        "origin": release.origin,
        "corpus_images": corpus.images,
        "corpus_species": corpus.species,
        "corpus_fingerprint": corpus.fingerprint,
        "matched": {
            "path": found.by_path,
            "data_set": found.by_data_set,
            "absent": found.absent,
        },
        "include_images": bool(release.options.get("include_images")),
        "test_labels": release.test_labels,
    }


def images_here(layout: Layout, corpus_images: CorpusImages) -> ImagesFound:
    """How many of the benchmark's images are in the corpus."""
    found = ImagesFound()
    _images_count(layout, corpus_images, found)
    return found


def _images_count(layout: Layout, corpus_images: CorpusImages, found: ImagesFound) -> None:
    """Count the benchmark's images that are in the corpus into `found`."""
    for _ in _images(layout, corpus_images, found):
        pass


def _ranked(layout: Layout, model: EmbeddingModel) -> Iterator[FixedImage]:
    texts = [(one.query.query_id, one.query.query_text) for one in layout.queries]
    try:
        for fixed in fixed_lists.fixed_lists(model, texts):
            yield from fixed
    except ModelSpecError as error:
        raise JobFailed(f"The fixed lists for re-ranking can't be made: {error}") from error


def _rule(layout: Layout) -> str:
    if layout.grades:
        return GRADED_RULE
    if len(layout.judgments):
        graded = any(query.grades for query in layout.own_queries.values())
        return f"{JUDGED_RULE} {GRADES_RULE}" if graded else JUDGED_RULE
    return QRELS_RULE if len(layout.negatives) else CONSENSUS_RULE


def _query(one: LayoutQuery, layout: Layout, efforts: dict[int, Effort]) -> SnapshotQuery:
    query = one.query
    effort = efforts.get(query.query_id, _NO_EFFORT)
    own = layout.own_queries.get(query.query_id)
    return SnapshotQuery(
        query_id=query.query_id,
        text=query.query_text,
        supercategory=query.supercategory,
        category=query.category,
        iconic_group=query.iconic_group or (own.iconic_group if own else None),
        split=query.split,
        # The query files of a release have INQUIRE's columns alone.
        species=list(query.species) or (own.species if own else []),
        guidelines=query.guidelines or (own.guidelines if own else ""),
        scientific_terms=own.scientific_terms
        if query.scientific_terms is None and own
        else query.scientific_terms,
        model=own.model if own else "",
        list_depth=own.list_depth if own else 0,
        list_size=own.list_size if own else 0,
        list_total=own.list_total if own else 0,
        list_checksum=own.list_checksum if own else "",
        annotators=effort.annotators,
        seconds=effort.seconds,
        index=query.index,
        row=one.row,
        left_open=own.left_open if own else "",
        completion_reason=own.completion_reason if own else "",
        grades=own.grades if own else layout.grades,
    )


def _images_and(
    listed: set[int], layout: Layout, corpus_images: CorpusImages, found: ImagesFound
) -> Iterator[SnapshotImage]:
    """Every image of the benchmark, and of the corpus those that a list names besides; by id."""
    named = _images(layout, corpus_images, found)
    more = released_images(sorted(listed))
    last = -1
    for image in merge(named, more, key=attrgetter("image_id")):
        # The merge is stable, so that the benchmark's own comes first of two.
        if image.image_id != last:
            yield image
        last = image.image_id


def _images(
    layout: Layout, corpus_images: CorpusImages, found: ImagesFound
) -> Iterator[SnapshotImage]:
    """Every image by id, with what the corpus says of those that it has."""
    for part in layout.image_parts(IMAGES_AT_A_TIME):
        known = {}
        if corpus_images.used:
            known = {one.image_id: one for one in released_images(list(part))}
        for image_id, details in part.items():
            path = details.pop("path")
            image = known.get(image_id)
            if image is not None and _same_path(path, image.file_name):
                found.by_path += 1
            elif image is not None and _same_source(path, image, corpus_images.data_set):
                found.by_data_set += 1
            else:
                found.absent += 1
                found.others += image is not None
                image = None
            # What the benchmark itself says goes first, so that its files come out as they went in.
            known_image = image or _unknown(image_id)
            yield replace(
                known_image,
                file_name=path or known_image.file_name,
                address=web_address(path) or known_image.address,
                **details,
            )


def _same_path(path: str, file_name: str) -> bool:
    """Whether a benchmark's path is that of the corpus's image with its id: equal, or the end of
    the other with at least a folder, since a file's name alone often says no more than the id."""
    ours, theirs = PurePosixPath(file_name).parts, PurePosixPath(path).parts
    shorter = min(len(ours), len(theirs))
    if not path or (shorter < 2 and len(ours) != len(theirs)):
        return False
    return ours[-shorter:] == theirs[-shorter:]


def _same_source(path: str, image: SnapshotImage, data_set: str) -> bool:
    """Whether the corpus's image has the benchmark's id in the data set that the user named; a path
    whose file is called otherwise contradicts that."""
    own_id = image.dataset == data_set and image.source_id == str(image.image_id)
    return own_id and PurePosixPath(path).name in ("", PurePosixPath(image.file_name).name)


def _unknown(image_id: int) -> SnapshotImage:
    return SnapshotImage(
        image_id=image_id,
        dataset="",
        source_id="",
        file_name="",
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
