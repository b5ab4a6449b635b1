"""What the database says of a matrix at one moment: whether it fits, and what it lacks.

One statement tells all, so it is of one snapshot of the database; its time goes by what changed
since the matrix was packed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import numpy as np
from django.db import connection

from core.binary_copy import moment_of, parse_rows, row_layout
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.arithmetic import Query, Rows
from retrieval.ranking.corpus_filter import CorpusFilter
from retrieval.ranking.files import Manifest, Mapped
from retrieval.ranking.selection import difference, ids_of, moments_of, rows_of, union

# Microseconds from the year 2000, as the files have them.
_US: Final = "((extract(epoch FROM {}) - 946684800) * 1000000)::bigint"

_KNOWN: Final = """
SELECT m.identity::text, coalesce(c.embedded, 0), coalesce(c.fingerprint, 0)::text,
       gone.ids, gone.moments, gone.marks,
       (SELECT array_agg(image_id) FROM ({withdrawn}) w),
       spot.ids, spot.moments, spot.scores, {columns}
FROM retrieval_embeddingmodel m
LEFT JOIN retrieval_embeddingcount c ON c.model_id = m.id
CROSS JOIN (
    SELECT array_agg(image_id) AS ids, array_agg({embedded_us}) AS moments,
           array_agg(retrieval_embedding_mark(image_id, embedded_at)) AS marks
    FROM retrieval_embeddingremoval WHERE model_id = %(model)s AND xid >= %(xmin)s
) gone
CROSS JOIN (
    SELECT array_agg(e.image_id) AS ids, array_agg({created_us}) AS moments,
           array_agg(-(e.vector <#> %(first)s::halfvec)) AS scores
    FROM {table} e WHERE e.image_id = ANY(%(spot)s)
) spot
{joins}
WHERE m.id = %(model)s
"""
# Asked first, since mostly there is nothing newer: the rest takes PostgreSQL long to plan.
_ANY_NEWER: Final = "coalesce((SELECT max(created_at) FROM {table}) > %(watermark)s, false)"
_NEWER: Final = """
CROSS JOIN (
    SELECT count(*) AS number,
           coalesce(sum(retrieval_embedding_mark(e.image_id, e.created_at)), 0) AS marks
    FROM {table} e WHERE e.created_at > %(watermark)s
) newer
CROSS JOIN (
    SELECT array_agg(q.number) AS numbers, array_agg(best.image_id) AS ids,
           array_agg(best.score) AS scores
    FROM unnest(%(vectors)s::halfvec[]) WITH ORDINALITY AS q (vector, number)
    CROSS JOIN LATERAL (
        SELECT e.image_id, -(e.vector <#> q.vector) AS score
        FROM {table} e WHERE e.created_at > %(watermark)s{narrowed}
        ORDER BY score DESC, e.image_id LIMIT %(limit)s
    ) best
) top
"""
_NEWER_COLUMNS: Final = "newer.number, newer.marks::text, top.numbers, top.ids, top.scores"


@dataclass(frozen=True, eq=False, slots=True)
class Spot:
    """Some embeddings and their scores for the first query, by the database."""

    image_ids: Rows
    moments: Rows
    scores: np.ndarray
    """(n,) float64"""


@dataclass(frozen=True, eq=False, slots=True)
class State:
    """What stands in the database beside a matrix, at one moment."""

    identity: str
    embedded: int
    fingerprint: int
    newer: int
    """Embeddings that came after the matrix's watermark."""
    newer_fingerprint: int
    removed_ids: Rows
    """(r,) images of embeddings that were removed since, with when these were stored and their
    marks.
    """
    removed_moments: Rows
    removed_marks: list[int]
    withdrawn: Rows
    spot: Spot
    best_newer: list[tuple[Rows, np.ndarray]]
    """For each query the best of the newer embeddings: images (n,) and scores (n,) float64."""


def read_state(
    model: EmbeddingModel,
    manifest: Manifest,
    *,
    queries: Sequence[Query] = (),
    limit: int | None = 0,
    narrow: CorpusFilter | None = None,
    spot_ids: Rows | None = None,
) -> State:
    """Ask the database; `limit` newer embeddings that pass `narrow` are ranked for each query.

    Raises EmbeddingModel.DoesNotExist for a model that was deleted.
    """
    narrow = narrow or CorpusFilter()
    texts = [query.text() for query in queries]
    values: dict[str, Any] = {
        "model": model.pk,
        "watermark": moment_of(manifest.watermark),
        "xmin": manifest.xmin,
        "first": texts[0] if texts else None,
        "spot": [] if spot_ids is None else spot_ids.tolist(),
    }
    parts = {
        "table": partition(model),
        "withdrawn": _named(values, "withdrawn", *narrow.withdrawn()),
        "embedded_us": _US.format("embedded_at"),
        "created_us": _US.format("e.created_at"),
    }
    columns = _ANY_NEWER.format(**parts)
    *known, any_newer = _row(_KNOWN.format(columns=columns, joins="", **parts), values)
    newer: tuple[Any, ...] = (0, "0", None, None, None)
    if any_newer:
        values |= {"vectors": texts, "limit": limit}
        parts["narrowed"] = _named(values, "narrowed", *narrow.embeddings())
        joins = _NEWER.format(**parts)
        row = _row(_KNOWN.format(columns=_NEWER_COLUMNS, joins=joins, **parts), values)
        known, newer = list(row[:-5]), row[-5:]
    numbers, top_ids, top_scores = (np.array(column or []) for column in newer[2:])
    return State(
        identity=known[0],
        embedded=known[1],
        fingerprint=int(known[2]),
        newer=newer[0],
        newer_fingerprint=int(newer[1]),
        removed_ids=_integers(known[3]),
        removed_moments=_integers(known[4]),
        removed_marks=known[5] or [],
        withdrawn=_integers(known[6]),
        spot=Spot(_integers(known[7]), _integers(known[8]), np.array(known[9] or [], np.float64)),
        best_newer=[
            (top_ids[numbers == number].astype(np.int64), top_scores[numbers == number])
            for number in range(1, len(queries) + 1)
        ],
    )


def _row(statement: str, values: dict[str, Any]) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row: tuple[Any, ...] | None = cursor.fetchone()
    if row is None:
        raise EmbeddingModel.DoesNotExist
    return row


def removed_rows(mapped: Mapped, state: State) -> tuple[Rows, int]:
    """The rows that were removed since the files were written, ascending, and the sum of their
    marks.
    """
    marks = {
        (image_id, moment): mark
        for image_id, moment, mark in zip(
            state.removed_ids.tolist(),
            state.removed_moments.tolist(),
            state.removed_marks,
            strict=True,
        )
    }
    rows = difference(rows_of(mapped.parts, union(state.removed_ids)), mapped.removed)
    image_ids, moments = ids_of(mapped.parts, rows), moments_of(mapped.parts, rows)
    keys = list(zip(image_ids.tolist(), moments.tolist(), strict=True))
    gone = np.array([key in marks for key in keys], dtype=np.bool_)
    return rows[gone], sum(marks[key] for key in keys if key in marks)


def misfit(mapped: Mapped, state: State, removed: Rows, removed_fingerprint: int) -> str:
    """What tells that the files don't hold what the database holds up to the watermark; empty where
    nothing does.
    """
    manifest = mapped.manifest
    if state.identity != manifest.identity:
        return "it is of another model"
    if manifest.live - len(removed) != state.embedded - state.newer:
        return (
            f"it holds {manifest.live - len(removed)} embeddings where the database has "
            f"{state.embedded - state.newer}"
        )
    if manifest.fingerprint - removed_fingerprint != state.fingerprint - state.newer_fingerprint:
        return "it holds other embeddings than the database"
    return ""


def ids_by(query: str, values: Sequence[Any]) -> Rows:
    """The numbers (n,) in the one column of a query, by binary COPY."""
    layout = row_layout(["value"])
    target = BytesIO()
    with connection.cursor() as cursor, connection.wrap_database_errors:
        statement = cursor.mogrify(query, values).decode()
        cursor.copy_expert(f"COPY ({statement}) TO STDOUT (FORMAT binary)", target)
    return parse_rows(target.getvalue(), layout)["value"].astype(np.int64)


def partition(model: EmbeddingModel) -> str:
    """The table of one model's embeddings."""
    return f"retrieval_embedding_{int(model.pk)}"


def _integers(values: list[int] | None) -> Rows:
    return np.array(values or [], dtype=np.int64)


def _named(values: dict[str, Any], name: str, query: str, positional: list[Any]) -> str:
    """A query whose %s are names of its own in `values`."""
    for number, value in enumerate(positional):
        query = query.replace("%s", f"%({name}{number})s", 1)
        values[f"{name}{number}"] = value
    return query
