"""Stored embeddings, read by binary COPY."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Final

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from core.binary_copy import parse_rows, row_layout
from core.sql import copy
from retrieval.embedding.models import EmbeddingModel

_OF_IMAGES: Final = "e.image_id = ANY('{{{ids}}}'::bigint[])"
_AFTER: Final = "e.image_id > {after}"
_IN_CORPUS: Final = (
    " AND e.image_id NOT IN (SELECT w.image_id FROM retrieval_imagewithdrawal w"
    " WHERE w.restored_at IS NULL)"
)

Embeddings = tuple[NDArray[np.int64], NDArray[np.float16]]
"""Image ids (n,), ascending, and the vectors (n, d) of unit length."""


def embeddings_of(model: EmbeddingModel, image_ids: Sequence[int]) -> Embeddings:
    """The model's embeddings of these images; images without one are left out."""
    ids = ",".join(map(str, map(int, image_ids)))
    found, vectors = _copied(model, _OF_IMAGES.format(ids=ids))
    order = np.argsort(found)
    return found[order], vectors[order]


def embeddings_after(
    model: EmbeddingModel, after: int, *, limit: int, withdrawn: bool = False
) -> Embeddings:
    """Return the model's next `limit` embeddings after image id `after`, by image id; without
    withdrawn images unless `withdrawn` is set.
    """
    condition = _AFTER.format(after=int(after)) + ("" if withdrawn else _IN_CORPUS)
    with transaction.atomic(), connection.cursor() as cursor:
        # By the primary key, in its order: before a partition is analyzed, the planner assumes that
        # it is small, and would sort the rest for every batch.
        cursor.execute("SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off")
        found = _copied(model, f"{condition} ORDER BY e.image_id LIMIT {int(limit)}")
        cursor.execute("RESET enable_sort; RESET enable_bitmapscan")
    return found


def embedding_count(model: EmbeddingModel, *, withdrawn: bool = False) -> int:
    """Return how many embeddings `embeddings_after` returns in all."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM retrieval_embedding e WHERE e.model_id = %s"
            + ("" if withdrawn else _IN_CORPUS),
            [model.pk],
        )
        return int(cursor.fetchone()[0])


def _copied(model: EmbeddingModel, condition: str) -> Embeddings:
    # COPY takes no parameters; all of these are numbers.
    query = (
        "SELECT e.image_id, e.vector FROM retrieval_embedding e"
        f" WHERE e.model_id = {int(model.pk)} AND {condition}"
    )
    target = io.BytesIO()
    copy(f"COPY ({query}) TO STDOUT (FORMAT binary)", target)
    layout = row_layout(["image_id"], dimension=model.dimension)
    rows = parse_rows(target.getbuffer(), layout)
    return rows["image_id"].astype(np.int64), rows["vector"].astype(np.float16)
