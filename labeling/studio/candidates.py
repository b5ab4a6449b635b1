"""Candidates as an annotator sees them: page by page, or some ranks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, Q, Subquery

from core.access import names_hidden_from
from labeling.candidates.models import Candidate
from labeling.judging.models import Judgment
from labeling.queries.models import Query
from retrieval.corpus.models import Image, Species
from retrieval.flags.models import ImageFlag
from retrieval.flags.selectors import is_withdrawn

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
    flags: list[str]
    """The kinds of its open flags, whoever raised them."""


def candidates_page(
    *, query: Query, user: Any, start_rank: int = 1, limit: int = 100
) -> list[CandidateView]:
    """Candidates of the current list at `start_rank` (from 1) and the `limit` - 1 ranks behind it,
    in order and without withdrawn images; empty while the list isn't ready.

    Two SQL queries. ValueError: start_rank < 1 or a limit outside 1..LARGEST_PAGE.
    """
    if start_rank < 1:
        raise ValueError(f"start_rank starts at 1: {start_rank}")
    if not 1 <= limit <= LARGEST_PAGE:
        raise ValueError(f"limit must be from 1 to {LARGEST_PAGE}: {limit}")
    return _candidates(query, user, Q(rank__gte=start_rank, rank__lt=start_rank + limit))


def candidates_at(*, query: Query, user: Any, ranks: Collection[int]) -> list[CandidateView]:
    """The candidates of the current list at these ranks, in the list's order and without withdrawn
    images; empty while the list isn't ready.

    Two SQL queries. ValueError: more than LARGEST_PAGE ranks.
    """
    if len(ranks) > LARGEST_PAGE:
        raise ValueError(f"{len(ranks)} ranks; at most {LARGEST_PAGE} at once.")
    return _candidates(query, user, Q(rank__in=ranks))


def _candidates(query: Query, user: Any, wanted: Q) -> list[CandidateView]:
    current = query.current_list
    if current is None or not current.ready:
        return []
    own = Judgment.objects.filter(query=query, annotator=user, image=OuterRef("image_id"))
    flags = ImageFlag.objects.filter(image=OuterRef("image_id"), state=ImageFlag.State.OPEN)
    candidates = (
        Candidate.objects.filter(~is_withdrawn("image_id"), wanted, list=current)
        .annotate(
            own_relevance=Subquery(own.values("relevance")),
            open_flags=ArraySubquery(flags.order_by("kind").values("kind").distinct()),
        )
        .select_related("image")
        .order_by("rank")
    )
    hidden = names_hidden_from(user)
    if not hidden:
        candidates = candidates.select_related("image__species").prefetch_related(
            "image__species__names"
        )
    return [
        CandidateView(
            rank=one.rank,
            score=one.score,
            image=one.image,
            species=None if hidden else one.image.species,
            relevance=one.own_relevance,
            flags=one.open_flags,
        )
        for one in candidates
    ]
