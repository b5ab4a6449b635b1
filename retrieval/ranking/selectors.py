"""The exact order of images by cosine similarity to a text.

A labelling order rests on this: never on an approximate index. Vectors are of unit length, so that
the negative inner product orders as cosine distance does; equal scores are ordered by image id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np
from django.db import connection

from retrieval.embedding.models import EmbeddingModel
from retrieval.encoding.unit_vectors import half_rounded
from retrieval.ranking import matrix_ranking as matrix
from retrieval.ranking.corpus_filter import CorpusFilter, embedded_and_not
from retrieval.ranking.matrices import lags, matrix_wanted
from retrieval.ranking.opened import MatrixUnusable

__all__ = [
    "CorpusCounts",
    "corpus_counts",
    "half_rounded",
    "image_scores",
    "rank_images",
    "rank_images_many",
    "ranking_method",
]


@dataclass(frozen=True)
class CorpusCounts:
    """How many images of a filter have an embedding, and how many have none yet; withdrawn ones
    are not counted.
    """

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
    scan: bool = False,
) -> list[tuple[int, float]]:
    """Return (image id, cosine similarity) of the most similar images; ties by image id.

    Exact, and the same bit for bit each time on one machine: by the model's packed matrix where
    that holds what the database holds, else by the database's scan, which `scan` asks for in any
    case. Scores are float32 values.
    `species_ids` empty or None means the whole corpus; `limit` None means all. `after` = (score,
    image id) goes on behind that one. `created_before` leaves out embeddings stored later than that
    moment. Images that are withdrawn at that moment, by default now, are left out. `corpus_at` asks
    instead for the corpus of a moment, whenever it was embedded: images imported by then and not
    withdrawn then.
    """
    narrow = CorpusFilter(species_ids, created_before, corpus_at)
    if not scan:
        lists = _by_matrix(model, [text_vector], limit=limit, narrow=narrow, behind=after)
        if lists is not None:
            return lists[0]
    return _by_scan(model, text_vector, limit, after, narrow)


def rank_images_many(
    *,
    model: EmbeddingModel,
    text_vectors: Sequence[Sequence[float]],
    limit: int,
    created_before: datetime | None = None,
    corpus_at: datetime | None = None,
) -> list[list[tuple[int, float]]]:
    """Return for each vector, in their order, what `rank_images` returns for it alone.

    One pass over the model's matrix for all of them, where it is packed.
    """
    narrow = CorpusFilter(None, created_before, corpus_at)
    lists = _by_matrix(model, text_vectors, limit=limit, narrow=narrow)
    if lists is not None:
        return lists
    return [_by_scan(model, vector, limit, None, narrow) for vector in text_vectors]


def ranking_method(model: EmbeddingModel) -> Literal["matrix", "scan"]:
    """Tell what would answer now: the model's packed matrix, or the database's scan."""
    try:
        matrix.lag_of(model)
    except MatrixUnusable:
        return "scan"
    return "matrix"


def image_scores(
    *, model: EmbeddingModel, text_vector: Sequence[float], image_ids: Sequence[int]
) -> dict[int, float]:
    """Return the cosine similarity of these images as `rank_images` gives it, also of withdrawn
    ones; images without an embedding under the model are left out.
    """
    try:
        known, unknown = matrix.scores_of(model, text_vector, np.array(image_ids, np.int64))
    except MatrixUnusable:
        known, unknown = {}, np.array(image_ids, np.int64)
    if not len(unknown):
        return known
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT e.image_id, -(e.vector <#> %s::halfvec) FROM retrieval_embedding e "
            "WHERE e.model_id = %s AND e.image_id = ANY(%s)",
            [_as_text(text_vector), model.pk, unknown.tolist()],
        )
        return known | {image_id: value + 0.0 for image_id, value in cursor.fetchall()}


def corpus_counts(
    *,
    model: EmbeddingModel,
    species_ids: Sequence[int] | None = None,
    created_before: datetime | None = None,
    corpus_at: datetime | None = None,
) -> CorpusCounts:
    """Count the images of a filter with and without an embedding (stored by `created_before`).

    Images that are withdrawn at that moment, by default now, are in neither count; `corpus_at` as
    in `rank_images`. In time by the number of the species' images; for the whole corpus by the
    numbers of withdrawn images and of what came after the moments.
    """
    narrow = CorpusFilter(species_ids, created_before, corpus_at)
    return CorpusCounts(*embedded_and_not(model, narrow))


def _by_matrix(
    model: EmbeddingModel,
    vectors: Sequence[Sequence[float]],
    *,
    limit: int | None,
    narrow: CorpusFilter,
    behind: tuple[float, int] | None = None,
) -> list[list[tuple[int, float]]] | None:
    """The rankings by the model's matrix; None where it can't answer, and is asked for."""
    try:
        answer = matrix.rank(model, vectors, limit=limit, narrow=narrow, behind=behind)
    except MatrixUnusable as error:
        matrix_wanted(model=model, rebuild=error.rebuild)
        return None
    if lags(answer.lag, answer.rows):
        matrix_wanted(model=model)
    return answer.lists


def _by_scan(
    model: EmbeddingModel,
    vector: Sequence[float],
    limit: int | None,
    after: tuple[float, int] | None,
    narrow: CorpusFilter,
) -> list[tuple[int, float]]:
    # `-(vector <#> q)` rather than the bare operator: no approximate index can ever serve this
    # order.
    score = "-(e.vector <#> %s::halfvec)"
    query = _as_text(vector)
    where, values = narrow.embeddings()
    if after is not None:
        where += f" AND ({score}, -e.image_id) < (%s::float8, %s)"
        values += [query, after[0], -after[1]]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT e.image_id, {score} AS score FROM retrieval_embedding e "
            f"WHERE e.model_id = %s{where} ORDER BY score DESC, e.image_id LIMIT %s",
            [query, model.pk, *values, limit],
        )
        # + 0.0 makes one zero of the two that floats have, so that a checksum sees one.
        return [(image_id, value + 0.0) for image_id, value in cursor.fetchall()]


def _as_text(vector: Sequence[float]) -> str:
    return "[" + ",".join(map(repr, map(float, vector))) + "]"
