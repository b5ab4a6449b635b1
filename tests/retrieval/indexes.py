"""Makes an index of a model's embeddings at once, inside of a test's transaction."""

from __future__ import annotations

from django.db import connection

from retrieval.embedding.models import EmbeddingModel
from retrieval.search.vector_indexes import IndexKind, index_expression, index_name, partition_name

OPERATORS = {"halfvec": "halfvec_ip_ops", "binary": "bit_hamming_ops"}


def make_index(model: EmbeddingModel, kind: IndexKind = "halfvec") -> None:
    """The index that a job would make, with the same name."""
    with connection.cursor() as cursor:
        # Deferred checks of rows that were just inserted stand in the way of an index.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        cursor.execute(
            f"CREATE INDEX {index_name(model)} ON {partition_name(model)} USING hnsw "
            f"({index_expression(kind, model.dimension)} {OPERATORS[kind]}) "
            "WITH (m = 8, ef_construction = 32)"
        )
