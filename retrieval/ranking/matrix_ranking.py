"""Rankings by a model's matrix: what the database's own scan gives, bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from django.conf import settings
from django.db import connection

from core.binary_copy import microseconds, moment_of
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.arithmetic import Query, Rows, Singles, margin
from retrieval.ranking.corpus_filter import CorpusFilter
from retrieval.ranking.files import Mapped
from retrieval.ranking.opened import MatrixUnusable, Opened, open_matrix
from retrieval.ranking.selection import (
    Eligible,
    begin,
    difference,
    ids_of,
    moments_of,
    ranked,
    rows_of,
    scores_at,
    select,
    select_many,
    union,
)
from retrieval.ranking.state import Spot, State, ids_by, misfit, partition, read_state, removed_rows

# Rows whose scores are asked of the database too: with the first ranking of a process, and with
# each later one.
_SPOT_FIRST: Final = 64
_SPOT: Final = 8

Place = tuple[int, float]


@dataclass(frozen=True, slots=True)
class Answer:
    """Rankings, and how far the matrix lags behind the database."""

    lists: list[list[Place]]
    lag: int
    """Embeddings that came or went since it was packed."""
    rows: int


@dataclass(frozen=True, eq=False, slots=True)
class _Moment:
    """A matrix that fits the database, at one moment of it."""

    model: EmbeddingModel
    opened: Opened
    state: State
    removed: Rows
    """Every row that was removed, ascending."""

    @property
    def mapped(self) -> Mapped:
        return self.opened.mapped

    @property
    def lag(self) -> int:
        return self.state.newer + len(self.removed) - len(self.mapped.removed)


def rank(
    model: EmbeddingModel,
    vectors: Sequence[Sequence[float]],
    *,
    limit: int | None,
    narrow: CorpusFilter,
    behind: tuple[float, int] | None = None,
) -> Answer:
    """Rank the images that pass `narrow` for each vector: (image id, score) each, ties by image id,
    from `behind` a (score, image id) on, the first `limit` of them.

    Raises MatrixUnusable where the database must answer.
    """
    queries = _queries(model, vectors)
    if limit is not None and limit < 1:
        raise MatrixUnusable("there is nothing to rank")
    opened = _opened(model)
    outside = narrow.later()
    later = np.empty(0, np.int64) if outside is None else ids_by(*outside)
    species = narrow.of_species()
    within = None if species is None else ids_by(*species)
    mapped = opened.mapped
    until = None if narrow.created_before is None else microseconds(narrow.created_before)
    if until is not None and until >= mapped.manifest.watermark:
        until = None
    # While the database is asked. What comes of it counts only if the matrix fits.
    begun = begin(mapped.parts, queries[0]) if within is None and len(queries) == 1 else None
    moment = _moment(model, opened, queries, limit=None if behind else limit, narrow=narrow)
    out = union(moment.state.withdrawn, later)
    without = union(moment.removed, rows_of(mapped.parts, out))
    eligible = Eligible(without, until, behind)
    scored = _scored(moment, queries, limit, eligible, within, begun)
    lists = []
    for (rows, scores), newer in zip(scored, moment.state.best_newer, strict=True):
        image_ids = np.concatenate([ids_of(mapped.parts, rows), newer[0]])
        together = np.concatenate([scores, newer[1].astype(np.float32) + np.float32(0)])
        lists.append(ranked(image_ids, together, limit=limit, behind=behind))
    return Answer(lists, moment.lag, mapped.manifest.rows)


def scores_of(
    model: EmbeddingModel, vector: Sequence[float], image_ids: Rows
) -> tuple[dict[int, float], Rows]:
    """The exact scores of images by their id, and the ids (n,) that only the database can tell of.

    Raises MatrixUnusable where the database must answer.
    """
    queries = _queries(model, [vector])
    moment = _moment(model, _opened(model), queries)
    parts = moment.mapped.parts
    rows = difference(rows_of(parts, union(image_ids)), moment.removed)
    found = ids_of(parts, rows)
    scores = _databases(moment, queries[0], rows, scores_at(parts, queries[0], rows))
    known = dict(zip(found.tolist(), scores.tolist(), strict=True))
    return known, difference(union(image_ids), found[np.argsort(found)])


def lag_of(model: EmbeddingModel) -> tuple[int, int]:
    """How many embeddings came or went since the matrix was packed, and how many rows it has.

    Raises MatrixUnusable where the database must answer.
    """
    moment = _moment(model, _opened(model), [])
    return moment.lag, moment.mapped.manifest.rows


def _queries(model: EmbeddingModel, vectors: Sequence[Sequence[float]]) -> list[Query]:
    try:
        queries = [Query.of(vector) for vector in vectors]
    except ValueError as error:
        raise MatrixUnusable(str(error)) from error
    if any(query.dimension != model.dimension for query in queries):
        raise MatrixUnusable("the vector is of another dimension")
    return queries


def _opened(model: EmbeddingModel) -> Opened:
    if not settings.MATRIX:
        raise MatrixUnusable("matrices are switched off")
    return open_matrix(model)


def _moment(
    model: EmbeddingModel,
    opened: Opened,
    queries: Sequence[Query],
    *,
    limit: int | None = 0,
    narrow: CorpusFilter | None = None,
) -> _Moment:
    mapped = opened.mapped
    spot = _spot_rows(opened) if queries else np.empty(0, np.int64)
    try:
        state = read_state(
            model,
            mapped.manifest,
            queries=queries,
            limit=limit,
            narrow=narrow,
            spot_ids=ids_of(mapped.parts, spot),
        )
    except EmbeddingModel.DoesNotExist:
        raise MatrixUnusable("the model was deleted") from None
    removed, fingerprint = removed_rows(mapped, state)
    reason = misfit(mapped, state, removed, fingerprint)
    if reason:
        raise MatrixUnusable(reason)
    gone = union(mapped.removed, removed)
    compared = difference(spot, gone)
    if len(compared):
        _compare(opened, queries[0], compared, state.spot)
    return _Moment(model, opened, state, gone)


def _spot_rows(opened: Opened) -> Rows:
    rows = opened.mapped.manifest.rows
    if not rows:
        return np.empty(0, np.int64)
    count = _SPOT_FIRST if opened.as_database is None else _SPOT
    return union(np.array([random.randrange(rows) for _ in range(count)], np.int64))


def _compare(opened: Opened, query: Query, rows: Rows, spot: Spot) -> None:
    """Compare the database's scores with the matrix's, of rows, ascending, that it must have."""
    parts = opened.mapped.parts
    stored = dict(
        zip(
            zip(spot.image_ids.tolist(), spot.moments.tolist(), strict=True),
            spot.scores.tolist(),
            strict=True,
        )
    )
    keys = zip(ids_of(parts, rows).tolist(), moments_of(parts, rows).tolist(), strict=True)
    theirs = np.array([stored.get(key, np.nan) for key in keys])
    ours = scores_at(parts, query, rows)
    if not (np.abs(ours - theirs) <= margin(query)).all():
        raise MatrixUnusable("its vectors are not the database's", rebuild=True)
    if opened.as_database is not False:
        opened.as_database = bool((ours == theirs).all())


def _scored(
    moment: _Moment,
    queries: Sequence[Query],
    limit: int | None,
    eligible: Eligible,
    within: Rows | None,
    begun: Callable[[], Singles] | None,
) -> Iterator[tuple[Rows, Singles]]:
    """For each query the rows that may be in its ranking, ascending, and the database's scores."""
    parts = moment.mapped.parts
    if within is not None:
        rows = difference(rows_of(parts, within), eligible.without)
        if eligible.until is not None:
            rows = rows[moments_of(parts, rows) <= eligible.until]
        for query in queries:
            yield rows, _databases(moment, query, rows, scores_at(parts, query, rows))
        return
    margins = [0.0 if moment.opened.as_database else margin(query) for query in queries]
    if limit is None or len(queries) == 1:
        chosen: Iterator[tuple[Rows, Singles]] = (
            select(parts, query, limit=limit, eligible=eligible, margin=most, begun=begun)
            for query, most in zip(queries, margins, strict=True)
        )
    else:
        chosen = select_many(parts, queries, limit=limit, eligible=eligible, margins=margins)
    for query, (rows, scores) in zip(queries, chosen, strict=True):
        yield rows, _databases(moment, query, rows, scores)


def _databases(moment: _Moment, query: Query, rows: Rows, scores: Singles) -> Singles:
    """The database's scores (n,) of rows, ascending: these, or where it isn't known to add as we
    do, its own.
    """
    if moment.opened.as_database:
        return scores
    image_ids = ids_of(moment.mapped.parts, rows)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT e.image_id, -(e.vector <#> %s::halfvec) FROM {partition(moment.model)} e "
            "WHERE e.image_id = ANY(%s) AND e.created_at <= %s",
            [query.text(), image_ids.tolist(), moment_of(moment.mapped.manifest.watermark)],
        )
        found = dict(cursor.fetchall())
    if len(found) != len(image_ids):
        raise MatrixUnusable("embeddings were removed while it was read")
    return np.array([found[i] for i in image_ids.tolist()], np.float32) + np.float32(0)
