"""Ranking by an approximate index, for free-text search only: some of the best may be missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db import connection, transaction

from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.reading import partition_name
from retrieval.ranking.selectors import image_scores
from retrieval.search.vector_indexes import VectorIndex, index_expression

MOST_EF_SEARCH: Final = 1000
LEAST_EF_SEARCH: Final = 400
RERANKED: Final = 10
"""How many times `limit` images a binary index proposes, to be ordered by their vectors."""

# Leaves the planner no other order than the index's, so that a search that is called approximate
# used the index. Iterative scans continue where a filter has left images out.
_SETTINGS = """
SELECT set_config('hnsw.ef_search', %s, true),
       set_config('hnsw.iterative_scan', 'strict_order', true),
       set_config('hnsw.scan_mem_multiplier', '8', true),
       set_config('enable_seqscan', 'off', true),
       set_config('enable_sort', 'off', true),
       set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true)
"""


def rank_by_index(
    *,
    model: EmbeddingModel,
    index: VectorIndex,
    text_vector: Sequence[float],
    species_ids: Sequence[int] | None = None,
    limit: int,
) -> list[tuple[int, float]]:
    """Return (image id, score) of images that the model's HNSW index finds, in order.

    The scores are those of `rank_images`, ties by image id. A binary index proposes ten times
    `limit` images, which are ordered by their vectors. Withdrawn images are left out; some of the
    best may be missing, and with a narrow filter fewer than `limit` may be found.

    pgvector 0.8: `hnsw.iterative_scan`, `hnsw.ef_search`; re-ranking behind `binary_quantize`.
    """
    proposed = limit * RERANKED if index.kind == "binary" else limit
    statement, values = _statement(model, index, text_vector, species_ids, proposed)
    ef_search = min(MOST_EF_SEARCH, max(LEAST_EF_SEARCH, 2 * proposed))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_SETTINGS, [str(ef_search)])
        cursor.execute(statement, values)
        image_ids = [image_id for (image_id,) in cursor.fetchall()]
        # Undoes the settings, whatever transaction this is part of.
        transaction.set_rollback(True)
    scores = image_scores(model=model, text_vector=text_vector, image_ids=image_ids)
    return sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))[:limit]


def _statement(
    model: EmbeddingModel,
    index: VectorIndex,
    text_vector: Sequence[float],
    species_ids: Sequence[int] | None,
    proposed: int,
) -> tuple[str, list[Any]]:
    query = "[" + ",".join(map(repr, map(float, text_vector))) + "]"
    operator = "<#>" if index.kind == "halfvec" else "<~>"
    expression = index_expression(index.kind, model.dimension, "e.vector")
    target = index_expression(index.kind, model.dimension, "%s::halfvec")
    within, values = "", list[Any]()
    if species_ids:
        within = "JOIN retrieval_image i ON i.id = e.image_id AND i.species_id = ANY(%s) "
        values.append(list(species_ids))
    return (
        f"SELECT e.image_id FROM {partition_name(model)} e {within}"
        "WHERE e.image_id NOT IN"
        " (SELECT w.image_id FROM retrieval_imagewithdrawal w WHERE w.restored_at IS NULL) "
        f"ORDER BY {expression} {operator} {target} LIMIT %s",
        [*values, query, proposed],
    )
