"""Candidates as an annotator sees them, page by page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labeling.models import Candidate, Judgment, Query
from retrieval.access import names_hidden_from
from retrieval.models import Image, Species

LARGEST_PAGE = 500


@dataclass(frozen=True, slots=True)
class CandidateView:
    """One candidate for one person."""

    rank: int
    score: float
    """Cosine similarity to the query's text, -1..1."""
    image: Image
    species: Species | None
    """None too where its name is hidden from the person."""
    relevance: str | None
    """The person's own judgment."""


def candidates_page(
    *, query: Query, user: Any, start_rank: int = 1, limit: int = 100
) -> list[CandidateView]:
    """Candidates of the current list from `start_rank` (from 1) on, in order; empty while the list
    isn't ready.

    Three SQL queries. ValueError: start_rank < 1 or a limit outside 1..LARGEST_PAGE.
    """
    if start_rank < 1:
        raise ValueError(f"start_rank starts at 1: {start_rank}")
    if not 1 <= limit <= LARGEST_PAGE:
        raise ValueError(f"limit must be from 1 to {LARGEST_PAGE}: {limit}")
    current = query.current_list
    if current is None or not current.ready or start_rank > current.size:
        return []
    hidden = names_hidden_from(user)
    candidates = list(
        Candidate.objects.filter(list=current, rank__gte=start_rank, rank__lt=start_rank + limit)
        .select_related("image__species")
        .prefetch_related("image__species__names")
        .order_by("rank")
    )
    own = dict(
        Judgment.objects.filter(
            query=query, annotator=user, image__in=[one.image_id for one in candidates]
        ).values_list("image_id", "relevance")
    )
    return [
        CandidateView(
            rank=one.rank,
            score=one.score,
            image=one.image,
            species=None if hidden else one.image.species,
            relevance=own.get(one.image_id),
        )
        for one in candidates
    ]
