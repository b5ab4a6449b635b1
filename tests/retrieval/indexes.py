"""Indexes of a model's embeddings: one that is made at once, and what a build waits for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, connections

from retrieval.embedding.models import EmbeddingModel
from retrieval.search.vector_indexes import IndexKind, index_expression, index_name, partition_name

OPERATORS = {"halfvec": "halfvec_ip_ops", "binary": "bit_hamming_ops"}


def make_index(model: EmbeddingModel, kind: IndexKind = "halfvec") -> None:
    """The index that the command would make, with the same name, inside of a test's transaction."""
    with connection.cursor() as cursor:
        # Deferred checks of rows that were just inserted stand in the way of an index.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
        cursor.execute(
            f"CREATE INDEX {index_name(model)} ON {partition_name(model)} USING hnsw "
            f"({index_expression(kind, model.dimension)} {OPERATORS[kind]}) "
            "WITH (m = 8, ef_construction = 32)"
        )


@contextmanager
def writing(model: EmbeddingModel) -> Iterator[None]:
    """A transaction that has written to the table, for the end of which a build waits."""
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(f"LOCK TABLE {partition_name(model)} IN ROW EXCLUSIVE MODE")
            yield
    finally:
        other.close()
