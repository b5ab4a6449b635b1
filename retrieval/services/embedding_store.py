"""Storing many embeddings at once, by binary COPY."""

from __future__ import annotations

import io
from typing import Final

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from retrieval.models import EmbeddingModel

# PostgreSQL's documentation, "COPY", "Binary Format".
_HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END: Final = b"\xff\xff"

# Its rows go when the transaction ends. PLAIN as in the partitions: a vector that goes through
# TOAST is written twice.
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
    the model's lock: `transaction_lock(embedding_model_lock(model), shared=True)`; all rows get one
    `created_at`, taken under it. `fresh` says that the images probably have none yet: then they are
    written straight to their place, if that is so. Raises ValueError for arrays that don't belong
    together or are not of the model, IntegrityError for vectors that are not of unit length and
    images given twice to a fresh copy; an image that doesn't exist fails the commit.
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
        cursor.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        data = _rows(model, image_ids, vectors, cursor.fetchone()[0])
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


def _rows(
    model: EmbeddingModel,
    image_ids: NDArray[np.int64],
    vectors: NDArray[np.float16],
    epoch_us: int,
) -> NDArray[np.void]:
    """COPY's binary rows (n,) of model_id, image_id, created_at and vector."""
    dimension = vectors.shape[1]
    layout = np.dtype(
        [
            ("fields", ">i2"),
            *(("model_size", ">i4"), ("model_id", ">i8")),
            *(("image_size", ">i4"), ("image_id", ">i8")),
            *(("created_size", ">i4"), ("created_at", ">i8")),
            # A halfvec is its dimension, an unused number and its halves.
            *(("vector_size", ">i4"), ("dimension", ">i2"), ("unused", ">i2")),
            ("vector", ">f2", (dimension,)),
        ]
    )
    rows = np.zeros(len(image_ids), dtype=layout)
    rows["fields"] = 4
    rows["model_size"] = rows["image_size"] = rows["created_size"] = 8
    rows["vector_size"] = 4 + 2 * dimension
    rows["model_id"] = model.pk
    rows["image_id"] = image_ids
    # PostgreSQL counts microseconds from the year 2000.
    rows["created_at"] = epoch_us - 946_684_800_000_000
    rows["dimension"] = dimension
    rows["vector"] = vectors
    return rows


def _any_known(model: EmbeddingModel, image_ids: NDArray[np.int64]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM unnest(%s::bigint[]) AS wanted (image_id) "
            "JOIN retrieval_embedding e ON e.model_id = %s AND e.image_id = wanted.image_id)",
            [image_ids.tolist(), model.pk],
        )
        return bool(cursor.fetchone()[0])


class _Rows(io.RawIOBase):
    """A header, the rows and an end, read without a second copy of the rows."""

    def __init__(self, rows: NDArray[np.void]) -> None:
        self._parts = [memoryview(_HEADER), memoryview(rows).cast("B"), memoryview(_END)]

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size`; empty at the end."""
        while self._parts:
            part = self._parts[0]
            taken = part if size < 0 else part[:size]
            self._parts[0] = part[len(taken) :]
            if not len(self._parts[0]):
                self._parts.pop(0)
            if len(taken):
                return bytes(taken)
        return b""


def _copy(table: str, rows: NDArray[np.void]) -> None:
    statement = f"COPY {table} (model_id, image_id, created_at, vector) FROM STDIN (FORMAT binary)"
    with connection.cursor() as cursor, connection.wrap_database_errors:
        cursor.copy_expert(statement, _Rows(rows), 1 << 20)
