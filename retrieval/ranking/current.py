"""The present state of a matrix: whether it matches the database, and the changes since packing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from django.db import connection

from core.binary_copy import moment_of
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.corpus_filter import CorpusFilter
from retrieval.ranking.files import MappedMatrix, MatrixUnusable, open_matrix
from retrieval.ranking.reading import (
    Chunk,
    Span,
    id_range_condition,
    partition_name,
    read_embeddings,
)
from retrieval.ranking.scan import Part, Rows, ids_of, moments_of, rows_of

TAIL_BYTES: Final = 64 << 20
"""Size of new vectors since packing above which the database ranks."""
# Embeddings may be stored between two statements.
_ATTEMPTS: Final = 5

_US: Final = "((extract(epoch FROM {}) - 946684800) * 1000000)::bigint"
# One statement, so that all values are of one snapshot.
_STATE: Final = """
SELECT m.identity::text, coalesce(c.embedded, 0), coalesce(c.fingerprint, 0)::text,
       newer.number, newer.marks::text, gone.ids, gone.moments, gone.marks,
       (SELECT array_agg(image_id) FROM ({withdrawn}) w)
FROM retrieval_embeddingmodel m
LEFT JOIN retrieval_embeddingcount c ON c.model_id = m.id
CROSS JOIN (
    SELECT count(*) AS number,
           coalesce(sum(retrieval_embedding_mark(e.image_id, e.created_at)), 0) AS marks
    FROM {table} e WHERE e.created_at > %s{within}
) newer
CROSS JOIN (
    SELECT array_agg(image_id) AS ids, array_agg({embedded_us}) AS moments,
           array_agg(retrieval_embedding_mark(image_id, embedded_at)) AS marks
    FROM retrieval_embeddingremoval e WHERE model_id = %s AND xid >= %s{within}
) gone
WHERE m.id = %s
"""


@dataclass(frozen=True, eq=False, slots=True)
class MatrixState:
    """A matrix compared with the database at one moment."""

    newer: int
    """Number of embeddings since its watermark."""
    newer_fingerprint: int
    removed: Rows
    """Rows that were removed since it was packed, ascending."""
    removed_fingerprint: int
    withdrawn: Rows
    """Images, ascending, that are withdrawn at the filter's moment."""
    embedded: int
    """Number of embeddings that it has with the newer ones and without the removed ones."""
    fingerprint: int
    """The sum of their marks."""
    misfit: str
    """Why the files don't match the database up to the watermark; empty if they do. For the matrix
    of some images the numbers aren't compared here, but by the caller, for all images together.
    """


@dataclass(frozen=True, eq=False, slots=True)
class CurrentMatrix:
    """A matrix that matches the database at one moment."""

    mapped: MappedMatrix
    parts: tuple[Part, ...]
    """The matrix's parts, and one of newer embeddings."""
    removed: Rows
    """Rows that were removed, ascending."""
    state: MatrixState

    @property
    def lag(self) -> int:
        """Number of embeddings stored or removed since it was packed."""
        return self.state.newer + len(self.state.removed)


def current_matrix(
    model: EmbeddingModel, *, corpus_filter: CorpusFilter | None = None
) -> CurrentMatrix:
    """Return the model's matrix, or that of the filter's images, with the changes since it was
    packed.

    Raises MatrixUnusable if the database must rank.
    """
    corpus_filter = corpus_filter or CorpusFilter()
    mapped = open_matrix(model, corpus_filter.images)
    for _ in range(_ATTEMPTS):
        state = read_state(model, mapped, corpus_filter=corpus_filter)
        if state.misfit:
            raise MatrixUnusable(state.misfit)
        if state.newer * 2 * model.dimension > TAIL_BYTES:
            raise MatrixUnusable(f"it lacks {state.newer} embeddings")
        tail = _tail(model, mapped, state)
        if tail is not None:
            removed = np.union1d(mapped.removed, state.removed)
            return CurrentMatrix(mapped, (*mapped.parts, *tail), removed, state)
    raise MatrixUnusable("embeddings come too fast")


def lag_of(model: EmbeddingModel, images: Span | None = None) -> tuple[int, int]:
    """Return how many embeddings were stored or removed since packing, and the matrix's rows.

    Raises MatrixUnusable if the database must rank.
    """
    current = current_matrix(model, corpus_filter=CorpusFilter(images=images))
    return current.lag, current.mapped.manifest.rows


def read_state(
    model: EmbeddingModel, mapped: MappedMatrix, *, corpus_filter: CorpusFilter | None = None
) -> MatrixState:
    """Compare a matrix with the database.

    Raises MatrixUnusable if the model was deleted.
    """
    manifest = mapped.manifest
    withdrawn, values = (corpus_filter or CorpusFilter()).withdrawn()
    inside, span = id_range_condition(manifest.images)
    statement = _STATE.format(
        table=partition_name(model),
        withdrawn=withdrawn,
        within=inside,
        embedded_us=_US.format("embedded_at"),
    )
    parameters: list[Any] = [
        *values,
        *(moment_of(manifest.watermark), *span),
        *(model.pk, manifest.xmin, *span),
        model.pk,
    ]
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        row = cursor.fetchone()
    if row is None:
        raise MatrixUnusable("the model was deleted")
    removed, removed_fingerprint = _removed(mapped, *(column or [] for column in row[5:8]))
    newer, newer_fingerprint = row[3], int(row[4])
    state = MatrixState(
        newer=newer,
        newer_fingerprint=newer_fingerprint,
        removed=removed,
        removed_fingerprint=removed_fingerprint,
        withdrawn=np.unique(np.array(row[8] or [], np.int64)),
        embedded=manifest.live - len(removed) + newer,
        fingerprint=manifest.fingerprint - removed_fingerprint + newer_fingerprint,
        misfit="",
    )
    if row[0] != manifest.identity:
        return replace(state, misfit="it is of another model")
    if span:
        return state
    return replace(state, misfit=_misfit(state, embedded=row[1], fingerprint=int(row[2])))


def _misfit(state: MatrixState, *, embedded: int, fingerprint: int) -> str:
    if state.embedded != embedded:
        held, stored = state.embedded - state.newer, embedded - state.newer
        return f"it holds {held} embeddings where the database has {stored}"
    if state.fingerprint != fingerprint:
        return "it holds other embeddings than the database"
    return ""


def _removed(
    mapped: MappedMatrix, image_ids: list[int], moments: list[int], marks: list[int]
) -> tuple[Rows, int]:
    """Return the rows, ascending, of removed embeddings, and the sum of their marks."""
    mark_of = dict(zip(zip(image_ids, moments, strict=True), marks, strict=True))
    rows = np.setdiff1d(rows_of(mapped.parts, np.array(image_ids, np.int64)), mapped.removed)
    stored = zip(
        ids_of(mapped.parts, rows).tolist(), moments_of(mapped.parts, rows).tolist(), strict=True
    )
    marks_of_rows = [mark_of.get(key) for key in stored]
    removed = np.array([mark is not None for mark in marks_of_rows], np.bool_)
    return rows[removed], sum(mark for mark in marks_of_rows if mark is not None)


def _tail(model: EmbeddingModel, mapped: MappedMatrix, state: MatrixState) -> list[Part] | None:
    """Return the embeddings since the matrix was packed, read once per process; None if they don't
    match the state.
    """
    if not state.newer:
        return []
    tail: Chunk | None = mapped.tail
    if tail is None or _key(tail) != (state.newer, state.newer_fingerprint):
        watermark = moment_of(mapped.manifest.watermark)
        inside, span = id_range_condition(mapped.manifest.images)
        tail = read_embeddings(model, f"e.created_at > %s{inside}", [watermark, *span])
        mapped.tail = tail
    if _key(tail) != (state.newer, state.newer_fingerprint):
        return None
    return [Part(mapped.manifest.rows, tail.image_ids, tail.moments, tail.vectors)]


def _key(tail: Chunk) -> tuple[int, int]:
    return len(tail.image_ids), tail.fingerprint
