"""Building and dropping the approximate index (HNSW) of a model's embeddings, for free-text search.

Candidate lists never use it. Storing an embedding takes longer while the index exists. A build
takes minutes to hours and blocks neither reads nor writes; if its process is killed, the database
finishes it.
"""

from __future__ import annotations

from typing import Final

from django.db import Error, connection

from core.errors import Refused
from core.locks import lock_key, session_lock
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import EmbeddingCount, EmbeddingModel
from retrieval.ranking.reading import partition_name
from retrieval.search.vector_indexes import (
    IndexKind,
    VectorIndex,
    index_expression,
    index_name,
    vector_index,
)

BINARY_ABOVE: Final = 1_000_000
"""The number of embeddings above which an index of signs is recommended: building a graph of the
vectors themselves takes more memory than many machines have."""
M: Final = 16
EF_CONSTRUCTION: Final = 64
LEAST_MEMORY: Final = 64
MOST_MEMORY: Final = 2048
_WORKERS: Final = (2, 0)
"""PostgreSQL's parallel workers; they need shared memory as large as the graph."""
_OPERATORS: Final[dict[IndexKind, str]] = {
    "halfvec": "halfvec_ip_ops",
    "binary": "bit_hamming_ops",
}
QUERY_CANCELED: Final = "57014"


class IndexRefused(Refused):
    """The index can't be made; the message says why."""


def recommended_kind(embedded: int) -> IndexKind:
    """Return the recommended kind of index for a number of embeddings."""
    return "binary" if embedded > BINARY_ABOVE else "halfvec"


def graph_memory(embedded: int, dimension: int, kind: IndexKind, m: int = M) -> int:
    """Estimate how many MiB the graph takes while it is built in memory.

    For each embedding its value, 2 m neighbors of 16 bytes in the lowest layer (Malkov and
    Yashunin 2018, section 4.1, M_max0 = 2 M) and pgvector's own data for it.
    """
    value = 2 * dimension if kind == "halfvec" else dimension // 8
    return embedded * (value + 32 * m + 256) // 2**20 + 1


def index_build(
    *,
    model_name: str = "",
    kind: IndexKind | None = None,
    m: int = M,
    ef_construction: int = EF_CONSTRUCTION,
    memory: int | None = None,
) -> VectorIndex:
    """Index a model's embeddings (default: the model in use), and return when that is done.

    `kind` is by default `recommended_kind`, `memory` (MiB for the graph) by default `graph_memory`,
    up to 2 GiB. An index that has these parameters is left as it is, any other is replaced, and a
    build that is going on elsewhere is waited for. Call it outside a transaction. Raises
    IndexRefused for a model without embeddings, for parameters that pgvector doesn't accept, and
    where the database can't build it.
    """
    model = _model(model_name)
    count = EmbeddingCount.objects.filter(model=model, embedded__gt=0).first()
    if count is None:
        raise IndexRefused(f"{model.name} has no embeddings yet.")
    if not (2 <= m <= 100 and 4 <= ef_construction <= 1000 and ef_construction >= 2 * m):
        raise IndexRefused(
            f"m={m}, ef_construction={ef_construction}: pgvector accepts an m from 2 to 100 and an "
            "ef_construction from 4 to 1,000 that is at least twice m."
        )
    if memory is not None and memory < 1:
        raise IndexRefused(f"{memory} MiB of memory is too little: give at least 1.")
    kind = kind or recommended_kind(count.embedded)
    needed = graph_memory(count.embedded, model.dimension, kind, m)
    memory = memory or min(MOST_MEMORY, max(LEAST_MEMORY, needed))
    with session_lock(lock_key("vector_index", model.pk)):
        index = vector_index(model)
        if (
            index is None
            or not index.ready
            or ((index.kind, index.m, index.ef_construction) != (kind, m, ef_construction))
        ):
            _create(model, kind, m, ef_construction, memory)
        index = vector_index(model)
    assert index is not None
    return index


def index_drop(*, model_name: str = "") -> None:
    """Drop a model's index, finished or not, without blocking reads or writes; a build is waited
    for. Call it outside a transaction. Raises IndexRefused if there is none.
    """
    model = _model(model_name)
    with session_lock(lock_key("vector_index", model.pk)):
        if vector_index(model) is None:
            raise IndexRefused(f"The embeddings of {model.name} have no index.")
        _drop(model)


def _model(name: str) -> EmbeddingModel:
    name = name or model_in_use()
    model = EmbeddingModel.objects.filter(name=name).first()
    if model is None:
        raise IndexRefused(f"{name} has no embeddings yet.")
    return model


def _create(
    model: EmbeddingModel, kind: IndexKind, m: int, ef_construction: int, memory: int
) -> None:
    expression = index_expression(kind, model.dimension)
    for workers in _WORKERS:
        _drop(model)
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"SET maintenance_work_mem = '{int(memory)}MB'")
                cursor.execute(f"SET max_parallel_maintenance_workers = {workers}")
                cursor.execute(
                    f"CREATE INDEX CONCURRENTLY {index_name(model)} ON {partition_name(model)}"
                    f" USING hnsw ({expression} {_OPERATORS[kind]})"
                    f" WITH (m = {int(m)}, ef_construction = {int(ef_construction)})"
                )
            return
        except Error as error:
            # An unfinished index would slow down every insert and be of no use.
            _drop(model)
            canceled = getattr(error.__cause__, "pgcode", None) == QUERY_CANCELED
            if canceled or workers == _WORKERS[-1]:
                raise IndexRefused(f"The index could not be built: {str(error).strip()}") from error


def _drop(model: EmbeddingModel) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index_name(model)}")
