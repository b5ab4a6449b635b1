"""Batches of rankings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.selectors import QUERIES_AT_ONCE, ranking_method

T = TypeVar("T")


def vectors_at_once(model: EmbeddingModel, *, most: int = QUERIES_AT_ONCE) -> int:
    """Return how many vectors to pass to `rank_images_many`: `most` if one pass over the model's
    matrix ranks them all; one if each takes a scan of the database, so that each result can be
    stored before the next.
    """
    return most if ranking_method(model) == "matrix" else 1


def in_batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Return the items in their order, `size` at a time; the last batch may be smaller.

    Raises ValueError for a size below 1.
    """
    if size < 1:
        raise ValueError(f"A batch holds at least one: {size}")
    return (items[start : start + size] for start in range(0, len(items), size))
