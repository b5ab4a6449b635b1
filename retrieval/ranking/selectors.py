"""The exact order of images by their scores for a vector; `scan` defines the score.

Candidate lists use this and never an approximate index. The packed matrix, the scan of the database
and the ranking of many vectors at once give the same bits on any machine.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

import numpy as np

from core.binary_copy import microseconds
from core.sql import copied_rows
from retrieval.embedding.models import EmbeddingModel
from retrieval.encoding.unit_rows import half_rounded
from retrieval.ranking.corpus_filter import CorpusFilter, count_embedded
from retrieval.ranking.current import CurrentMatrix, current_matrix, lag_of
from retrieval.ranking.files import MatrixUnusable
from retrieval.ranking.matrices import matrix_request, should_repack
from retrieval.ranking.rankers import RANKERS
from retrieval.ranking.reading import partition_name, read_ids
from retrieval.ranking.scan import (
    EXACT_ROWS,
    Halves,
    ImpreciseProduct,
    RowFilter,
    Rows,
    ScoredImage,
    Scores,
    error_bound,
    exact_scores,
    ids_of,
    query_of,
    rank_rows,
    rows_of,
    scores_at,
    sort_by_score,
    vectors_of,
)

__all__ = [
    "CorpusCounts",
    "corpus_counts",
    "half_rounded",
    "image_products",
    "image_scores",
    "image_vectors",
    "rank_by_matrix",
    "rank_images",
    "rank_images_many",
    "ranking_method",
]

logger = logging.getLogger(__name__)

QUERIES_AT_ONCE: Final = 256
_VECTORS: Final = "SELECT e.image_id, e.vector FROM {} e WHERE e.image_id = ANY(%s)"


@dataclass(frozen=True)
class CorpusCounts:
    """Numbers of a filter's images with and without an embedding, without withdrawn images."""

    embedded: int
    unembedded: int


def rank_images(
    *,
    model: EmbeddingModel,
    text_vector: Sequence[float],
    species_ids: Sequence[int] | None = None,
    limit: int | None,
    after: tuple[float, int] | None = None,
    created_before: datetime | None = None,
    corpus_at: datetime | None = None,
    matching: tuple[str, Sequence[Any]] | None = None,
    scan: bool = False,
) -> list[ScoredImage]:
    """Return (image id, score) of the most similar images; ties by image id.

    The score is the exact inner product of the half-precision vectors, so it is the same bit for
    bit whichever way it is found: by the model's packed matrix where that holds what the database
    holds, else by PostgreSQL's scan, which `scan` asks for in any case.
    `species_ids` empty or None means the whole corpus, `matching` is a further condition (see
    `CorpusFilter`); `limit` None means all. `after` = (score,
    image id) goes on behind that one. `created_before` leaves out embeddings stored later than that
    moment. Images that are withdrawn at that moment, by default now, are left out. `corpus_at` asks
    instead for the corpus of a moment, whenever it was embedded: images imported by then and not
    withdrawn then. Raises ValueError for a vector that isn't the model's.
    """
    queries = query_of(text_vector, model.dimension)[None]
    corpus_filter = CorpusFilter(species_ids, created_before, corpus_at, matching=matching)
    if limit is not None and limit < 1:
        return []
    lists = None if scan else _by_matrices(model, queries, limit, corpus_filter, after)
    return _by_scan(model, queries[0], limit, corpus_filter, after) if lists is None else lists[0]


def rank_images_many(
    *,
    model: EmbeddingModel,
    text_vectors: Sequence[Sequence[float]],
    species_ids: Sequence[int] | None = None,
    limit: int,
    created_before: datetime | None = None,
    corpus_at: datetime | None = None,
) -> list[list[ScoredImage]]:
    """Return for each vector, in their order, what `rank_images` returns for it alone.

    One pass over the model's matrix for QUERIES_AT_ONCE of them, where it is packed.
    """
    queries = [query_of(vector, model.dimension) for vector in text_vectors]
    if not queries or limit < 1:
        return [[] for _ in queries]
    corpus_filter = CorpusFilter(species_ids, created_before, corpus_at)
    lists = _by_matrices(model, np.array(queries), limit, corpus_filter)
    if lists is not None:
        return lists
    return [_by_scan(model, query, limit, corpus_filter) for query in queries]


def ranking_method(model: EmbeddingModel) -> Literal["matrix", "scan"]:
    """Return what would rank now: the model's packed matrix, or what stands in its place, or a scan
    of the database.
    """
    if RANKERS:
        return "matrix" if RANKERS[-1].is_ready(model) else "scan"
    try:
        lag_of(model)
    except MatrixUnusable:
        return "scan"
    return "matrix"


def image_scores(
    *, model: EmbeddingModel, text_vector: Sequence[float], image_ids: Sequence[int]
) -> dict[int, float]:
    """Return the scores of these images as `rank_images` gives them, also of withdrawn ones; images
    without an embedding under the model are left out.
    """
    query = query_of(text_vector, model.dimension)
    ids, scores = image_products(model=model, vector=query, image_ids=np.array(image_ids))
    return dict(zip(ids.tolist(), scores.tolist(), strict=True))


def image_products(
    *, model: EmbeddingModel, vector: Halves, image_ids: Rows, scan: bool = False
) -> tuple[Rows, Scores]:
    """Return the ids (n,) of those of these images that the model has embedded, in no order, and
    their scores (n,) for a vector (d,), as `image_scores`; `scan` as in `rank_images`.
    """
    ids = image_ids.astype(np.int64)
    try:
        if scan:
            raise MatrixUnusable("the database's own scan is asked for")
        current = current_matrix(model)
    except MatrixUnusable:
        return _scores_of_rows(_VECTORS.format(partition_name(model)), [ids.tolist()], vector)
    rows = np.setdiff1d(rows_of(current.parts, ids), current.removed, assume_unique=True)
    return ids_of(current.parts, rows), scores_at(current.parts, vector, rows)


def image_vectors(*, model: EmbeddingModel, image_ids: Sequence[int]) -> tuple[Rows, Halves]:
    """Return the ids (n,) of those of these images that the model has embedded, ascending, and
    their stored vectors (n, d); of withdrawn ones too.
    """
    ids = np.array(image_ids, np.int64)
    try:
        current = current_matrix(model)
    except MatrixUnusable:
        stored = copied_rows(
            _VECTORS.format(partition_name(model)),
            [ids.tolist()],
            ["image_id"],
            dimension=model.dimension,
        )
        embedded, vectors = (
            stored["image_id"].astype(np.int64),
            stored["vector"].astype(np.float16),
        )
    else:
        rows = np.setdiff1d(rows_of(current.parts, ids), current.removed, assume_unique=True)
        if not len(rows):
            return np.empty(0, np.int64), np.empty((0, model.dimension), np.float16)
        embedded, vectors = ids_of(current.parts, rows), vectors_of(current.parts, rows)
    order = np.argsort(embedded)
    return embedded[order], vectors[order]


def corpus_counts(
    *,
    model: EmbeddingModel,
    species_ids: Sequence[int] | None = None,
    created_before: datetime | None = None,
    corpus_at: datetime | None = None,
    matching: tuple[str, Sequence[Any]] | None = None,
) -> CorpusCounts:
    """Count the images of a filter with and without an embedding (stored by `created_before`).

    Images that are withdrawn at that moment, by default now, are in neither count; `corpus_at` as
    in `rank_images`. In time by the number of the species' images; for the whole corpus by the
    numbers of withdrawn images and of what came after the moments. `matching` as in `rank_images`.
    """
    corpus_filter = CorpusFilter(species_ids, created_before, corpus_at, matching=matching)
    return CorpusCounts(*count_embedded(model, corpus_filter))


def rank_by_matrix(
    model: EmbeddingModel,
    queries: Halves,
    limit: int | None,
    corpus_filter: CorpusFilter,
    behind: tuple[float, int] | None,
) -> tuple[list[list[ScoredImage]], CurrentMatrix]:
    """Return the rankings by the model's matrix, or by that of the filter's images, and the
    matrix.

    Raises MatrixUnusable or ImpreciseProduct if the database must rank.
    """
    moment = corpus_filter.created_before
    later, narrowed = corpus_filter.later(), corpus_filter.within()
    too_late = np.empty(0, np.int64) if later is None else read_ids(*later)
    within = None if narrowed is None else read_ids(*narrowed)
    current = current_matrix(model, corpus_filter=corpus_filter)
    parts = current.parts
    out = rows_of(parts, np.concatenate([current.state.withdrawn, too_late]))
    row_filter = RowFilter(
        without=np.union1d(current.removed, out),
        within=None if within is None else rows_of(parts, within),
        until=None if moment is None else microseconds(moment),
        behind=behind,
    )
    most = limit or max(1, sum(len(part.image_ids) for part in parts))
    lists = []
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        some = queries[start : start + QUERIES_AT_ONCE]
        lists += rank_rows(parts, some, limit=most, row_filter=row_filter)
    return lists, current


def _by_matrices(
    model: EmbeddingModel,
    queries: Halves,
    limit: int | None,
    corpus_filter: CorpusFilter,
    behind: tuple[float, int] | None = None,
) -> list[list[ScoredImage]] | None:
    """Return the rankings by the model's matrix, or by what stands in its place; None if that can't
    rank, and then a matrix is requested.
    """
    if RANKERS:
        # A condition in SQL isn't sent to shards.
        if corpus_filter.matching is not None:
            return None

        def scan(query: Halves, part: CorpusFilter) -> list[ScoredImage]:
            return _by_scan(model, query, limit, part, behind)

        return RANKERS[-1].rank(model, queries, limit, corpus_filter, behind, scan)
    try:
        lists, current = rank_by_matrix(model, queries, limit, corpus_filter, behind)
    except MatrixUnusable:
        matrix_request(model=model)
        return None
    except ImpreciseProduct:
        logger.warning("NumKong's product is imprecise here, so the database ranks")
        return None
    if should_repack(current.lag, current.mapped.manifest.rows):
        matrix_request(model=model)
    return lists


def _by_scan(
    model: EmbeddingModel,
    query: Halves,
    limit: int | None,
    corpus_filter: CorpusFilter,
    behind: tuple[float, int] | None = None,
) -> list[ScoredImage]:
    """Return the ranking by a scan of the database.

    pgvector adds in single precision, so more rows than the limit are fetched. Those that aren't
    fetched score at most twice the bound above the least that is: if the last place of the ranking
    is above that, all rows that can be before it were fetched; if not, more are.
    """
    bound, text, table = error_bound(query), str(query.tolist()), partition_name(model)
    # `-(vector <#> q)` rather than the bare operator: no approximate index can ever serve this
    # order.
    product = "-(e.vector <#> %s::halfvec)"
    where, values = corpus_filter.embeddings()
    if behind is not None:
        where += f" AND {product} <= %s"
        values += [text, behind[0] + bound]
    statement = (
        "SELECT e.image_id, e.vector FROM ("
        f"SELECT e.image_id FROM {table} e WHERE true{where} ORDER BY {product} DESC LIMIT %s"
        f") best JOIN {table} e USING (image_id)"
    )
    fetched = None if limit is None else limit + limit // 4 + 64
    while True:
        image_ids, scores = _scores_of_rows(statement, [*values, text, fetched], query)
        ranking = sort_by_score(image_ids, scores, limit=limit, behind=behind)
        if fetched is None or len(image_ids) < fetched:
            return ranking
        if len(ranking) == limit and ranking[-1][1] > scores.min() + 2 * bound:
            return ranking
        fetched *= 4


def _scores_of_rows(statement: str, values: Sequence[Any], query: Halves) -> tuple[Rows, Scores]:
    """The image ids (n,) of the rows (image_id, vector) of a statement, and their scores."""
    rows = copied_rows(statement, values, ["image_id"], dimension=len(query))
    scores = [np.empty(0)]
    for start in range(0, len(rows), EXACT_ROWS):
        vectors = rows["vector"][start : start + EXACT_ROWS].astype(np.float16)
        scores.append(exact_scores(vectors, query))
    return rows["image_id"].astype(np.int64), np.concatenate(scores)
