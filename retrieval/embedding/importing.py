"""Import of embeddings from files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from django.db import IntegrityError, connection, transaction

from core.locks import transaction_lock
from retrieval.embedding.embedding_models import embedding_model_get_or_create, embedding_model_lock
from retrieval.embedding.files import Layout, LayoutRefused, chunk_rows, layout_read
from retrieval.embedding.matching import (
    LeftOut,
    key_choose,
    matches_between,
    rows_left_out,
    rows_match,
)
from retrieval.embedding.models import LARGEST_DIMENSION, EmbeddingModel
from retrieval.embedding.selectors import embeddings_of
from retrieval.embedding.store import embeddings_copy, embeddings_stored
from retrieval.encoding.model_specs import ModelSpecError, describe
from retrieval.encoding.unit_rows import Fault, UnitRows, unit_rows

NAMED: Final = 20
"""How many rows of each kind that wasn't imported are named."""

Progress = Callable[[int, int], None]
StageListener = Callable[[str], None]


@dataclass
class EmbeddingImportReport:
    """The result of an import, in rows. Counts are exact; `named` has texts for people about the
    first 20 rows of each kind that was not imported.
    """

    model: str
    dimension: int
    files: int
    rows: int
    key: str
    unmatched_counts: bool
    """Whether rows that name no image are faults, or were expected."""
    unloadable: str = ""
    """Why the model can't be loaded here, so that no text can be ranked under it; or empty."""
    stored: int = 0
    replaced: int = 0
    """How many of the stored ones replaced another vector."""
    present: int = 0
    """Rows whose vector was stored already."""
    differing: int = 0
    """Images with another vector, which was not replaced."""
    unmatched: int = 0
    ambiguous: int = 0
    repeated: int = 0
    """Rows of an image that an earlier row named."""
    refused: int = 0
    """Vectors that aren't finite, or not of unit length."""
    named: dict[str, list[str]] = field(default_factory=dict)

    @property
    def faults(self) -> int:
        """How many rows could not be imported but should have been."""
        unmatched = self.unmatched if self.unmatched_counts else 0
        return unmatched + self.ambiguous + self.differing + self.refused

    def name(self, kind: str, text: str) -> None:
        """Add a text about a row, unless there are 20 of its kind."""
        texts = self.named.setdefault(kind, [])
        if len(texts) < NAMED:
            texts.append(text)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Rows of one pair of files that have an image."""

    end: int
    positions: np.ndarray
    image_ids: np.ndarray
    rows: UnitRows | None


def import_embeddings(
    *,
    model_name: str,
    directory: Path,
    dimension: int | None = None,
    dataset: str | None = None,
    key: str | None = None,
    limit_to_known: bool = False,
    normalize: bool = False,
    replace: bool = False,
    progress: Progress | None = None,
    on_stage: StageListener | None = None,
) -> EmbeddingImportReport:
    """Store the embeddings of a folder in clip-retrieval's layout (`retrieval.embedding.files`).

    Rows are matched with images (`retrieval.embedding.matching`) by the column `key` and among the
    images of `dataset`, if they are given. `limit_to_known`: the files may have more images than
    the corpus. Vectors must be of unit length within 1 %, unless `normalize` is set. An image with
    the same vector is left alone, so that an import can be stopped and continued; one with another
    vector keeps it, unless `replace` is set. The model need not be loadable here.

    About 20,000 rows are in memory, and in a transaction, at a time. `progress(done, total)` counts
    rows; `on_stage` gets a text about each step before. At the end a job to pack the model's matrix
    is created.

    Raises LayoutRefused, before anything is written, if the files are damaged, name no images, or
    have vectors of another dimension than the model or `dimension`, or of an unsupported one.
    """
    stage = on_stage or (lambda text: None)
    stage("looking at the files")
    layout = layout_read(Path(directory))
    unloadable = _dimension_check(model_name, layout, dimension)
    stage("looking by which column the rows name images")
    chosen = key_choose(layout=layout, dataset=dataset, column=key)
    stage(f"matching {layout.rows:,} rows by {chosen}")
    matches = rows_match(layout=layout, key=chosen, dataset=dataset)
    report = EmbeddingImportReport(
        model=model_name,
        dimension=layout.dimension,
        files=len(layout.parts),
        rows=layout.rows,
        key=str(chosen),
        unmatched_counts=not limit_to_known,
        unloadable=unloadable,
        unmatched=matches.unmatched,
        ambiguous=matches.ambiguous,
        repeated=matches.repeated,
    )
    for left_out in LeftOut:
        for position, text in rows_left_out(left_out, limit=NAMED):
            report.name(left_out.name.lower(), f"{layout.name(position)}: {text!r} {left_out}")
    stage(f"storing {matches.matched:,} vectors")
    model = embedding_model_get_or_create(name=model_name, dimension=layout.dimension)
    with ThreadPoolExecutor(max_workers=1) as reader:
        ahead = None
        for first, last in [*_spans(layout), (layout.rows, layout.rows)]:
            positions, image_ids = matches_between(first, last)
            following = reader.submit(_read, layout, last, positions, image_ids, normalize)
            if ahead is not None:
                chunk = ahead.result()
                _store(report, model, layout, chunk, replace)
                if progress is not None:
                    progress(chunk.end, layout.rows)
            ahead = following
    if report.stored:
        with connection.cursor() as cursor:
            # The planner needs the partition's new size.
            cursor.execute(f"ANALYZE retrieval_embedding_{int(model.pk)}")
        embeddings_stored.send(sender=None, model=model, created_by=None)
    return report


def _dimension_check(model_name: str, layout: Layout, dimension: int | None) -> str:
    """Why the model can't be loaded here, or empty; LayoutRefused if its vectors aren't these."""
    if layout.dimension > LARGEST_DIMENSION:
        raise LayoutRefused(
            layout.directory,
            f"its vectors are of {layout.dimension} numbers; at most {LARGEST_DIMENSION} are kept",
        )
    unloadable, described = "", None
    try:
        described = describe(model_name).dimension
    except ModelSpecError as error:
        unloadable = str(error)
    known = EmbeddingModel.objects.filter(name=model_name).first()
    expected = {
        "--dimension says": dimension,
        f"the model {model_name!r} has here": known.dimension if known else None,
        f"the model {model_name!r} gives": described,
    }
    for source, number in expected.items():
        if number is not None and number != layout.dimension:
            raise LayoutRefused(
                layout.directory,
                f"its vectors are of {layout.dimension} numbers, and {source} {number}",
            )
    return unloadable


def _spans(layout: Layout) -> Iterator[tuple[int, int]]:
    """Yield first position, and the one after the last, of each chunk within a file."""
    size = chunk_rows(layout.dimension)
    for part in layout.parts:
        for first in range(part.first, part.first + part.rows, size):
            yield first, min(first + size, part.first + part.rows)


def _read(
    layout: Layout, end: int, positions: np.ndarray, image_ids: np.ndarray, normalize: bool
) -> _Chunk:
    rows = None
    if len(positions):
        rows = unit_rows(layout.vectors(positions), scale=normalize)
    return _Chunk(end, positions, image_ids, rows)


def _store(
    report: EmbeddingImportReport,
    model: EmbeddingModel,
    layout: Layout,
    chunk: _Chunk,
    replace: bool,
) -> None:
    if chunk.rows is None:
        return
    faults = chunk.rows.faults
    for row in np.flatnonzero(faults):
        report.refused += 1
        position = int(chunk.positions[row])
        report.name(
            "refused", f"{layout.name(position)}: {_reason(faults[row], chunk.rows.lengths[row])}"
        )
    good = faults == Fault.NONE
    positions, image_ids = chunk.positions[good], chunk.image_ids[good]
    vectors = _masked(chunk.rows.vectors, good)
    try:
        stored, other = _chunk_store(model, image_ids, vectors, replace=replace, fresh=True)
    except IntegrityError:
        # Another process stored one of them in the meantime.
        stored, other = _chunk_store(model, image_ids, vectors, replace=replace, fresh=False)
    report.stored += stored
    if replace:
        report.present += len(image_ids) - stored
        report.replaced += int(np.count_nonzero(other))
        return
    report.differing += int(np.count_nonzero(other))
    report.present += len(image_ids) - stored - int(np.count_nonzero(other))
    for row in np.flatnonzero(other):
        report.name(
            "differing",
            f"{layout.name(int(positions[row]))}: image {image_ids[row]} has another vector",
        )


def _masked(vectors: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The vectors that a mask (n,) selects of vectors (n, d); no copy if it selects all."""
    return vectors if mask.all() else vectors[mask]


def _reason(fault: int, length: float) -> str:
    if fault == Fault.NOT_FINITE:
        return "holds a number that is not finite"
    if fault == Fault.ZERO:
        return "is all zeros"
    return f"is {length:.4g} long, not 1"


@transaction.atomic
def _chunk_store(
    model: EmbeddingModel,
    image_ids: np.ndarray,
    vectors: np.ndarray,
    *,
    replace: bool,
    fresh: bool,
) -> tuple[int, np.ndarray]:
    """Store missing vectors; returns their number, and a mask (n,) of those that differed."""
    transaction_lock(embedding_model_lock(model), shared=True)
    known_ids, known = embeddings_of(model, image_ids.tolist())
    present = np.isin(image_ids, known_ids)
    other = np.zeros(len(image_ids), dtype=bool)
    at = np.searchsorted(known_ids, image_ids[present])
    other[present] = (known[at] != vectors[present]).any(axis=1)
    missing = ~present
    if replace and other.any():
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM retrieval_embedding WHERE model_id = %s AND image_id = ANY(%s)",
                [model.pk, image_ids[other].tolist()],
            )
        missing |= other
    stored = embeddings_copy(
        model=model, image_ids=image_ids[missing], vectors=_masked(vectors, missing), fresh=fresh
    )
    return stored, other
