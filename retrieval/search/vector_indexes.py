"""The existing approximate indexes (HNSW) of the models' embeddings.

Only free-text search uses them; candidate lists are always exact (`retrieval.ranking`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core.sql import fetch_all
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.reading import partition_name

IndexKind = Literal["halfvec", "binary"]

# Catalogs alone, and no pg_get_indexdef: that fails for an index which is dropped meanwhile.
_INDEXES = """
SELECT m.id, i.indisvalid, o.opcname, c.reloptions, coalesce(pg_relation_size(c.oid), 0)
FROM retrieval_embeddingmodel m
JOIN pg_index i ON i.indexrelid = to_regclass('retrieval_embedding_' || m.id || '_hnsw')
JOIN pg_class c ON c.oid = i.indexrelid
JOIN pg_opclass o ON o.oid = i.indclass[0]
"""


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """An HNSW index over a model's embeddings.

    `kind` "halfvec" indexes the vectors themselves, "binary" the signs of their coordinates. `m`
    and `ef_construction` are pgvector's. An index that isn't `ready` is being built or was left
    unfinished; it can't be used.
    """

    name: str
    kind: IndexKind
    m: int
    ef_construction: int
    size_bytes: int
    ready: bool


def index_name(model: EmbeddingModel) -> str:
    """The name of the model's index, if it has one."""
    return f"{partition_name(model)}_hnsw"


def index_expression(kind: IndexKind, dimension: int, vector: str = "vector") -> str:
    """The SQL expression that an index of the kind orders by; a query must use the same."""
    if kind == "halfvec":
        return f"({vector}::halfvec({int(dimension)}))"
    return f"(binary_quantize({vector})::bit({int(dimension)}))"


def vector_index(model: EmbeddingModel) -> VectorIndex | None:
    """The model's index, ready or not, or None."""
    return _indexes(" WHERE m.id = %s", [model.pk]).get(model.pk)


def vector_indexes() -> dict[int, VectorIndex]:
    """The index of each model that has one, by the model's key."""
    return _indexes("", [])


def _indexes(where: str, values: Sequence[Any]) -> dict[int, VectorIndex]:
    return {row[0]: _index(*row) for row in fetch_all(_INDEXES + where, values)}


def _index(
    model_id: int, ready: bool, operators: str, options: list[str] | None, size: int
) -> VectorIndex:
    given = dict(option.split("=", 1) for option in options or [])
    return VectorIndex(
        name=f"retrieval_embedding_{model_id}_hnsw",
        kind="binary" if operators == "bit_hamming_ops" else "halfvec",
        m=int(given.get("m", 16)),
        ef_construction=int(given.get("ef_construction", 64)),
        size_bytes=size,
        ready=ready,
    )
