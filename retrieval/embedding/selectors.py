"""Stored embeddings, read by binary COPY."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from core.sql import copied_rows
from retrieval.embedding.models import EmbeddingModel

_IN_CORPUS: Final = (
    " AND e.image_id NOT IN (SELECT w.image_id FROM retrieval_imagewithdrawal w"
    " WHERE w.restored_at IS NULL)"
)

Embeddings = tuple[NDArray[np.int64], NDArray[np.float16]]
"""Image ids (n,), ascending, and the vectors (n, d) of unit length."""


def embeddings_of(model: EmbeddingModel, image_ids: Sequence[int]) -> Embeddings:
    """The model's embeddings of these images; images without one are left out."""
    ids, vectors = _read(model, "e.image_id = ANY(%s::bigint[])", list(map(int, image_ids)))
    order = np.argsort(ids)
    return ids[order], vectors[order]


def embeddings_after(
    model: EmbeddingModel, after: int, *, limit: int, withdrawn: bool = False
) -> Embeddings:
    """Return the model's next `limit` embeddings after image id `after`, by image id; without
    withdrawn images unless `withdrawn` is set.
    """
    condition = "e.image_id > %s" + ("" if withdrawn else _IN_CORPUS)
    with transaction.atomic(), connection.cursor() as cursor:
        # By the primary key, in its order: before a partition is analyzed, the planner assumes that
        # it is small, and would sort the rest for every batch.
        cursor.execute("SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off")
        embeddings = _read(model, f"{condition} ORDER BY e.image_id LIMIT %s", int(after), limit)
        cursor.execute("RESET enable_sort; RESET enable_bitmapscan")
    return embeddings


def embedding_count(model: EmbeddingModel, *, withdrawn: bool = False) -> int:
    """Return how many embeddings `embeddings_after` returns in all."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM retrieval_embedding e WHERE e.model_id = %s"
            + ("" if withdrawn else _IN_CORPUS),
            [model.pk],
        )
        return int(cursor.fetchone()[0])


def _read(model: EmbeddingModel, condition: str, *values: Any) -> Embeddings:
    rows = copied_rows(
        "SELECT e.image_id, e.vector FROM retrieval_embedding e"
        f" WHERE e.model_id = %s AND {condition}",
        [model.pk, *values],
        ["image_id"],
        dimension=model.dimension,
    )
    return rows["image_id"].astype(np.int64), rows["vector"].astype(np.float16)
