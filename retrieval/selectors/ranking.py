"""The exact order of images by cosine similarity to a text.

A labelling order rests on this: never on an approximate index. Vectors are of unit length, so that
the negative inner product orders as cosine distance does; equal scores are ordered by image id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.db import connection

from retrieval.models import EmbeddingModel
from retrieval.text_vectors import text_vector
from retrieval.unit_vectors import half_rounded

__all__ = [
    "CorpusCounts",
    "corpus_counts",
    "half_rounded",
    "image_scores",
    "rank_images",
    "rank_images_many",
    "ranking_method",
    "text_vector",
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

    An exact scan, the same bit for bit each time on one machine. Scores are float32 values.
    `scan` has the database go through its own rows, whatever else could answer.
    `species_ids` empty or None means the whole corpus; `limit` None means all. `after` = (score,
    image id) goes on behind that one. `created_before` leaves out embeddings stored later than that
    moment. Images that are withdrawn at that moment, by default now, are left out. `corpus_at` asks
    instead for the corpus of a moment, whenever it was embedded: images imported by then and not
    withdrawn then.
    """
    # `-(vector <#> q)` rather than the bare operator: no approximate index can ever serve this
    # order.
    score = "-(e.vector <#> %s::halfvec)"
    query = "[" + ",".join(map(repr, map(float, text_vector))) + "]"
    where, values = _filter(species_ids, created_before, corpus_at)
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


def rank_images_many(
    *,
    model: EmbeddingModel,
    text_vectors: Sequence[Sequence[float]],
    limit: int,
    created_before: datetime | None = None,
    corpus_at: datetime | None = None,
) -> list[list[tuple[int, float]]]:
    """Return for each vector, in their order, what `rank_images` returns for it alone."""
    return [
        rank_images(
            model=model,
            text_vector=vector,
            limit=limit,
            created_before=created_before,
            corpus_at=corpus_at,
        )
        for vector in text_vectors
    ]


def ranking_method(model: EmbeddingModel) -> Literal["matrix", "scan"]:
    """Tell what would answer now: the model's packed matrix, or the database's scan."""
    return "scan"


def image_scores(
    *, model: EmbeddingModel, text_vector: Sequence[float], image_ids: Sequence[int]
) -> dict[int, float]:
    """Return the cosine similarity of these images as `rank_images` gives it, also of withdrawn
    ones; images without an embedding under the model are left out.
    """
    query = "[" + ",".join(map(repr, map(float, text_vector))) + "]"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT e.image_id, -(e.vector <#> %s::halfvec) FROM retrieval_embedding e "
            "WHERE e.model_id = %s AND e.image_id = ANY(%s)",
            [query, model.pk, list(image_ids)],
        )
        return {image_id: value + 0.0 for image_id, value in cursor.fetchall()}


def corpus_counts(
    *,
    model: EmbeddingModel,
    species_ids: Sequence[int] | None = None,
    created_before: datetime | None = None,
    corpus_at: datetime | None = None,
) -> CorpusCounts:
    """Count the images of a filter with and without an embedding (stored by `created_before`).

    Images that are withdrawn at that moment, by default now, are in neither count; `corpus_at` as
    in `rank_images`.
    """
    where, values = _filter(species_ids, created_before, corpus_at)
    images, image_values = _not_withdrawn("i.id", created_before or corpus_at)
    if corpus_at is not None:
        images += " AND i.created_at <= %s"
        image_values.append(corpus_at)
    if species_ids:
        images += " AND i.species_id = ANY(%s)"
        image_values.append(list(species_ids))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT (SELECT count(*) FROM retrieval_embedding e WHERE e.model_id = %s{where}),"
            f" (SELECT count(*) FROM retrieval_image i WHERE {images})",
            [model.pk, *values, *image_values],
        )
        embedded, total = cursor.fetchone()
    return CorpusCounts(embedded=embedded, unembedded=total - embedded)


def _filter(
    species_ids: Sequence[int] | None,
    created_before: datetime | None,
    corpus_at: datetime | None,
) -> tuple[str, list[Any]]:
    condition, values = _not_withdrawn("e.image_id", created_before or corpus_at)
    where = f" AND {condition}"
    if species_ids:
        where += (
            " AND e.image_id IN (SELECT i.id FROM retrieval_image i WHERE i.species_id = ANY(%s))"
        )
        values.append(list(species_ids))
    if created_before is not None:
        where += " AND e.created_at <= %s"
        values.append(created_before)
    if corpus_at is not None:
        # The few that came later make a small hash, as withdrawn ones do.
        where += (
            " AND e.image_id NOT IN (SELECT i.id FROM retrieval_image i WHERE i.created_at > %s)"
        )
        values.append(corpus_at)
    return where, values


def _not_withdrawn(image: str, moment: datetime | None) -> tuple[str, list[Any]]:
    """A condition on the column `image`, with its values: not withdrawn at `moment`, or now.

    NOT IN makes a small hash of the withdrawn ids that the scan asks row by row.
    """
    if moment is None:
        then, values = "w.restored_at IS NULL", list[Any]()
    else:
        then = "w.withdrawn_at <= %s AND (w.restored_at IS NULL OR w.restored_at > %s)"
        values = [moment, moment]
    withdrawn = f"SELECT w.image_id FROM retrieval_imagewithdrawal w WHERE {then}"
    return f"{image} NOT IN ({withdrawn})", values
