"""Reading embeddings from the database by binary COPY."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from core.sql import copied_rows
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.scan import Halves, Rows


@dataclass(frozen=True, eq=False, slots=True)
class Chunk:
    """Embeddings by ascending image id."""

    image_ids: Rows
    """(n,)"""
    moments: Rows
    """(n,) microseconds from the year 2000."""
    vectors: Halves
    """(n, d)"""
    fingerprint: int
    """The sum of their marks."""


class Span(NamedTuple):
    """A range of image ids."""

    first: int
    last: int
    """Included."""


def id_range_condition(images: Span | None, column: str = "e.image_id") -> tuple[str, list[int]]:
    """A condition in SQL on a column of image ids, with AND before it, and its values; none for the
    whole corpus (None).
    """
    return ("", []) if images is None else (f" AND {column} BETWEEN %s AND %s", [*images])


def partition_name(model: EmbeddingModel) -> str:
    """The table of one model's embeddings."""
    return f"retrieval_embedding_{int(model.pk)}"


def read_ids(query: str, values: Sequence[Any]) -> Rows:
    """Return the integers (n,) in the single column of a query."""
    return copied_rows(query, values, ["value"])["value"].astype(np.int64)


def read_embeddings(
    model: EmbeddingModel, where: str, values: Sequence[Any], *, limit: int | None = None
) -> Chunk:
    """Return the first `limit` embeddings `e`, by image id, that meet a condition in SQL."""
    rows = copied_rows(
        "SELECT e.image_id, e.created_at, retrieval_embedding_mark(e.image_id, e.created_at),"
        f" e.vector FROM {partition_name(model)} e WHERE {where} ORDER BY e.image_id LIMIT %s",
        [*values, limit],
        ["image_id", "created_at", "mark"],
        dimension=model.dimension,
    )
    marks = rows["mark"].astype(np.int64)
    return Chunk(
        image_ids=rows["image_id"].astype(np.int64),
        moments=rows["created_at"].astype(np.int64),
        vectors=rows["vector"].astype(np.float16),
        # Halves of the numbers, whose sums have room.
        fingerprint=(int((marks >> 32).sum()) << 32) + int((marks & 0xFFFFFFFF).sum()),
    )
