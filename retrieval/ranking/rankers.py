"""What ranks in place of a model's whole matrix, which is then not packed; extras append to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.corpus_filter import CorpusFilter
from retrieval.ranking.scan import Halves, ScoredImage

Scan = Callable[[Halves, CorpusFilter], list[ScoredImage]]
"""Ranks by the database, for a query (d,) and a filter."""


class Ranker(NamedTuple):
    """Ranks, bit for bit as the scan of the database does."""

    is_ready: Callable[[EmbeddingModel], bool]
    """Whether it ranks by the model now, without the database."""
    rank: Callable[
        [EmbeddingModel, Halves, int | None, CorpusFilter, tuple[float, int] | None, Scan],
        list[list[ScoredImage]] | None,
    ]
    """Takes a model, queries (q, d), a limit, a filter, the place to go on behind, and a scan for a
    part of the corpus. Returns the rankings, or None if the database must rank."""


RANKERS: list[Ranker] = []
"""At most one; the last is used."""
