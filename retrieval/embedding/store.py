"""Storing many embeddings at once, by binary COPY."""

from __future__ import annotations

from typing import Final

import numpy as np
from django.db import connection
from django.dispatch import Signal
from numpy.typing import NDArray

from core.binary_copy import RowReader, microseconds, new_rows, row_layout
from core.sql import copy
from retrieval.embedding.models import EmbeddingModel

embeddings_stored = Signal()
"""Sent after many embeddings of a model were stored, with `model` and `created_by` (or None)."""

# Its rows are deleted when the transaction ends. PLAIN as in the partitions: a vector that goes
# through TOAST is written twice.
_ARRIVALS: Final = """
CREATE TEMPORARY TABLE IF NOT EXISTS embedding_arrivals (
    model_id bigint, image_id bigint, created_at timestamptz,
    vector halfvec STORAGE PLAIN
) ON COMMIT DELETE ROWS
"""


def embeddings_copy(
    *,
    model: EmbeddingModel,
    image_ids: NDArray[np.int64],
    vectors: NDArray[np.float16],
    fresh: bool = False,
) -> int:
    """Store the vectors (n, d), of unit length in half precision, of the images (n,); returns how
    many were stored.

    Images that have an embedding under the model are skipped. Call it in a transaction that holds
    `transaction_lock(embedding_model_lock(model), shared=True)`; all rows get one `created_at`,
    taken under this lock. `fresh`: the images probably have no embedding, so that the rows may be
    copied straight into the partition. Raises ValueError for arrays of the wrong shape or type,
    IntegrityError for vectors that are not of unit length and for images given twice to a fresh
    copy; an image that doesn't exist fails the commit.
    """
    image_ids = np.ascontiguousarray(image_ids, dtype=np.int64)
    if vectors.shape != (len(image_ids), model.dimension) or vectors.dtype != np.float16:
        raise ValueError(
            f"{len(image_ids)} vectors of {model.dimension} halves are needed, not "
            f"{vectors.dtype} {vectors.shape}."
        )
    if not connection.in_atomic_block:
        raise ValueError("Embeddings are stored within a transaction that holds the model's lock.")
    if not len(image_ids):
        return 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        layout = row_layout(["model_id", "image_id", "created_at"], dimension=model.dimension)
        data = new_rows(layout, len(image_ids))
        data["model_id"], data["image_id"] = model.pk, image_ids
        data["created_at"] = microseconds(cursor.fetchone()[0])
        data["vector"] = vectors
        if fresh and not _any_known(model, image_ids):
            _copy(f"retrieval_embedding_{int(model.pk)}", data)
            return len(image_ids)
        cursor.execute(_ARRIVALS)
        cursor.execute("TRUNCATE embedding_arrivals")
        _copy("embedding_arrivals", data)
        cursor.execute(
            "INSERT INTO retrieval_embedding (model_id, image_id, created_at, vector) "
            "SELECT model_id, image_id, created_at, vector FROM embedding_arrivals "
            "ORDER BY image_id ON CONFLICT DO NOTHING"
        )
        stored: int = cursor.rowcount
        cursor.execute("TRUNCATE embedding_arrivals")
    return stored


def _any_known(model: EmbeddingModel, image_ids: NDArray[np.int64]) -> bool:
    # Looks each image up by the key. For a join with a limit the planner expects a row soon, and
    # would read the whole table if there is none.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM unnest(%s::bigint[]) AS new (image_id) "
            "CROSS JOIN LATERAL (SELECT FROM retrieval_embedding e WHERE e.model_id = %s "
            "AND e.image_id = new.image_id OFFSET 0) known)",
            [image_ids.tolist(), model.pk],
        )
        return bool(cursor.fetchone()[0])


def _copy(table: str, rows: NDArray[np.void]) -> None:
    statement = f"COPY {table} (model_id, image_id, created_at, vector) FROM STDIN (FORMAT binary)"
    copy(statement, RowReader(rows), size=1 << 20)
