"""Writing the snapshot of an existing benchmark, from its files and from the corpus's rows of its
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
from releases.importing.layout import Layout, LayoutQuery
from releases.making import fixed_lists
from releases.making.images import Corpus, released_images, web_address
from releases.making.images import corpus as corpus_now
from releases.making.progress import Progress
from releases.making.take_snapshot import CONSENSUS_RULE as OWN_RULE
from releases.making.take_snapshot import GRADES_RULE
from releases.making.takedown import tables_redact
from releases.models import Release
from releases.snapshot.snapshot import (
    FixedImage,
    Header,
    Snapshot,
    SnapshotImage,
    SnapshotQuery,
    SnapshotWriter,
    all_tables,
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
_NO_CORPUS: Final = Corpus(images=0, species=0, fingerprint="")
#: The fields of a query that only the snapshot of a release has.
_OWN_FIELDS: Final = ("model", "list_depth", "list_size", "list_total", "list_checksum",
                      "left_open", "completion_reason", "grades")  # fmt: skip


@dataclass(frozen=True, slots=True)
class CorpusImages:
    """Which images of the corpus may be the benchmark's: those with its ids whose path or data set
    confirms it."""

    used: bool = True
    """False for none of them."""
    data_set: str = ""
    """The data set whose ids the benchmark's image ids are; empty where the user named none."""


@dataclass(slots=True)
class ImageMatches:
    """How many of the benchmark's images are in the corpus, by what identifies them."""

    by_path: int = 0
    by_data_set: int = 0
    absent: int = 0
    """Not in the corpus, as far as the files and the data set's name tell."""
    others: int = 0
    """How many of the absent have an id that the corpus has for another image."""

    @property
    def named(self) -> int:
        """Images that the benchmark's files name."""
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
    matches: ImageMatches,
    progress: Progress,
) -> None:
    """Write the snapshot of a benchmark that is imported into an empty directory; counts its images
    into `matches`.

    The fixed lists are those of the release's `rerank_model`, if it has one, else those of the
    files. Without a `rerank_model`, an unchanged release of this application keeps the tables of
    its snapshot. JobFailed: a list can't be made.
    """
    snapshot = layout.intact_snapshot
    if snapshot and not release.options.get("rerank_model"):
        _copy_snapshot(release, layout, snapshot, directory, corpus_images, matches, progress)
        return
    writer = SnapshotWriter(directory)
    efforts = layout.efforts()
    with progress.step(QUERIES_STEP, len(layout.queries)):
        writer.table("queries", (_query(read, layout, efforts) for read in layout.queries))
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
                    for fixed in _ranked(layout, model):
                        write(fixed)
                        listed.add(fixed.image_id)
                        count(fixed.rank == 1)
        with (
            progress.step(IMAGES_STEP, len(layout.images)) as count,
            writer.rows("images") as write,
        ):
            for image in _images_with(listed, layout, corpus_images, matches):
                write(image)
                count(1)
        if snapshot:
            tables_redact(snapshot, directory, _taken_down(layout), tables=["custom_fields"])
        if model and not matches.whole:
            raise JobFailed("Images of the benchmark have left the corpus meanwhile.")
        with progress.step(CORPUS_STEP):
            facts = _facts(release, matches)
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
            negatives_known={read.query.split for read in layout.queries} <= layout.judged_splits,
        )
    )


def _copy_snapshot(
    release: Release,
    layout: Layout,
    snapshot: Snapshot,
    directory: Path,
    corpus_images: CorpusImages,
    matches: ImageMatches,
    progress: Progress,
) -> None:
    """Copy the tables of a snapshot, without the personal data of images that were taken down
    here."""
    for title in (QUERIES_STEP, PAIRS_STEP, FIXED_STEP):
        with progress.step(title):
            pass
    with progress.step(IMAGES_STEP):
        for path in filter(Path.exists, map(snapshot.path, all_tables())):
            shutil.copyfile(path, directory / path.name)
        if taken_down := _taken_down(layout):
            tables_redact(snapshot, directory, taken_down)
        _count_matches(layout, corpus_images, matches)
    with progress.step(CORPUS_STEP):
        facts = _facts(release, matches)
    own = snapshot.header
    if own.origin != Release.Origin.IMPORTED:
        facts["consensus"] = _rule(layout)
    SnapshotWriter(directory).header(replace(own, **facts))


def _taken_down(layout: Layout) -> list[int]:
    """Those of the benchmark's images that were taken down here, by id."""
    taken_down = set(ImageTakedown.objects.values_list("pk", flat=True))
    return sorted(taken_down.intersection(layout.images["image_id"].to_pylist()))


def _facts(release: Release, matches: ImageMatches) -> dict[str, Any]:
    """The header's facts about the import itself."""
    # A corpus that has only some of the images says nothing about the benchmark.
    corpus = corpus_now() if matches.whole else _NO_CORPUS
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
            "path": matches.by_path,
            "data_set": matches.by_data_set,
            "absent": matches.absent,
        },
        "include_images": bool(release.options.get("include_images")),
        "test_labels": release.test_labels,
    }


def images_here(layout: Layout, corpus_images: CorpusImages) -> ImageMatches:
    """How many of the benchmark's images are in the corpus."""
    matches = ImageMatches()
    _count_matches(layout, corpus_images, matches)
    return matches


def _count_matches(layout: Layout, corpus_images: CorpusImages, matches: ImageMatches) -> None:
    """Count the benchmark's images that are in the corpus into `matches`."""
    for _ in _images(layout, corpus_images, matches):
        pass


def _ranked(layout: Layout, model: EmbeddingModel) -> Iterator[FixedImage]:
    texts = [(read.query.query_id, read.query.query_text) for read in layout.queries]
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


def _query(
    read: LayoutQuery, layout: Layout, efforts: dict[int, tuple[int, float]]
) -> SnapshotQuery:
    query = read.query
    annotators, seconds = efforts.get(query.query_id, (0, 0.0))
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
        annotators=annotators,
        seconds=seconds,
        index=query.index,
        row=read.row,
        **(
            {name: getattr(own, name) for name in _OWN_FIELDS} if own else {"grades": layout.grades}
        ),
    )


def _images_with(
    listed: set[int], layout: Layout, corpus_images: CorpusImages, matches: ImageMatches
) -> Iterator[SnapshotImage]:
    """Every image of the benchmark, and the corpus's images `listed`, by id."""
    named = _images(layout, corpus_images, matches)
    more = released_images(sorted(listed))
    last = -1
    for image in merge(named, more, key=attrgetter("image_id")):
        # The merge is stable, so of two with the same id the benchmark's own comes first.
        if image.image_id != last:
            yield image
        last = image.image_id


def _images(
    layout: Layout, corpus_images: CorpusImages, matches: ImageMatches
) -> Iterator[SnapshotImage]:
    """Every image of the benchmark by id, with the corpus's details of those that it has."""
    for part in layout.image_parts(IMAGES_AT_A_TIME):
        known = {}
        if corpus_images.used:
            known = {image.image_id: image for image in released_images(list(part))}
        for image_id, details in part.items():
            path = details.pop("path")
            image = known.get(image_id)
            if image is not None and _same_path(path, image.file_name):
                matches.by_path += 1
            elif image is not None and _same_source(path, image, corpus_images.data_set):
                matches.by_data_set += 1
            else:
                matches.absent += 1
                matches.others += image is not None
                image = None
            # The benchmark's own details go first, so that its files come out as they went in.
            known_image = image or SnapshotImage(image_id)
            yield replace(
                known_image,
                file_name=path or known_image.file_name,
                address=web_address(path) or known_image.address,
                **details,
            )


def _same_path(path: str, file_name: str) -> bool:
    """Whether a benchmark's path is that of the corpus's image with its id: both are equal, or one
    is the end of the other and has at least a folder, since a file's name alone often says no more
    than the id."""
    ours, theirs = PurePosixPath(file_name).parts, PurePosixPath(path).parts
    shorter = min(len(ours), len(theirs))
    if not path or (shorter < 2 and len(ours) != len(theirs)):
        return False
    return ours[-shorter:] == theirs[-shorter:]


def _same_source(path: str, image: SnapshotImage, data_set: str) -> bool:
    """Whether the corpus's image has the benchmark's id in the data set that the user named, and
    the benchmark has no path with another file name."""
    own_id = image.dataset == data_set and image.source_id == str(image.image_id)
    return own_id and PurePosixPath(path).name in ("", PurePosixPath(image.file_name).name)
