"""What a reviewer looks at: unsure images, disagreements, and how a judgment came about."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations, groupby
from operator import itemgetter
from typing import Any

from django.db.models import Count, F, Q, QuerySet

from labeling.access import queries_visible_to
from labeling.consensus import Agreement, Vote, agreement, consensus
from labeling.models import (
    Candidate,
    Judgment,
    JudgmentEvent,
    Query,
    QueryTransition,
    Relevance,
)
from retrieval.access import Role, at_least
from retrieval.models import Image
from retrieval.selectors.flags import is_withdrawn


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One image that a reviewer should decide, with everybody's standing judgment."""

    image: Image
    rank: int | None
    """In the query's current list."""
    votes: list[Judgment]
    unsure: bool
    """Whether the consensus is unsure; else annotators disagree."""
    history: list[JudgmentEvent]
    """Every act of judging it, in the order stored."""


def images_to_review(query: Query) -> list[ReviewItem]:
    """Images of a query that are unsure, or on which annotators disagree and no reviewer has
    decided; in list order. Withdrawn images are nothing to decide on.
    """
    doubtful = (
        Judgment.objects.filter(query=query)
        .filter(~is_withdrawn("image_id"))
        .order_by()
        .values("image")
        .annotate(
            unsure=Count("pk", filter=Q(relevance=Relevance.UNSURE)),
            relevant=Count("pk", filter=Q(relevance=Relevance.RELEVANT)),
            votes=Count("pk"),
        )
        .filter(Q(unsure__gt=0) | Q(relevant__gt=0, relevant__lt=F("votes")))
        .values("image")
    )
    votes: defaultdict[int, list[Judgment]] = defaultdict(list)
    judgments = Judgment.objects.filter(query=query, image__in=doubtful)
    for judgment in judgments.select_related("annotator", "image__species").order_by("pk"):
        votes[judgment.image_id].append(judgment)
    ranks = dict(
        Candidate.objects.filter(list=query.current_list_id, image__in=list(votes)).values_list(
            "image_id", "rank"
        )
        if query.current_list_id
        else ()
    )
    items = []
    for image_id, given in votes.items():
        agreed = consensus(
            Vote(one.annotator_id, one.annotator.role, one.relevance, one.updated_at)
            for one in given
        )
        if agreed.unsure or agreed.decided_by != "reviewer":
            items.append(ReviewItem(given[0].image, ranks.get(image_id), given, agreed.unsure, []))
    items.sort(key=lambda item: (item.rank is None, item.rank or 0, item.image.pk))
    _add_history(query, {item.image.pk: item.history for item in items})
    return items


def _add_history(query: Query, histories: dict[int, list[JudgmentEvent]]) -> None:
    events = JudgmentEvent.objects.filter(query=query, image__in=list(histories))
    for event in events.select_related("annotator").order_by("pk"):
        histories[event.image_id].append(event)


def judgments_visible_to(user: Any, query: Query) -> QuerySet[Judgment]:
    """The standing judgments of a query by rank: all for reviewers, an annotator's own."""
    judgments = Judgment.objects.filter(query=query).select_related("annotator")
    if not queries_visible_to(user).filter(pk=query.pk).exists():
        return judgments.none()
    if not at_least(user, Role.REVIEWER):
        judgments = judgments.filter(annotator=user)
    return judgments.order_by(F("rank").asc(nulls_last=True), "image_id", "annotator_id")


def judgment_history(query: Query, image_id: int, user: Any) -> QuerySet[JudgmentEvent]:
    """Every act of judging this image for this query, in the order stored; an annotator sees their
    own.
    """
    events = JudgmentEvent.objects.filter(query=query, image=image_id)
    if not queries_visible_to(user).filter(pk=query.pk).exists():
        return events.none()
    if not at_least(user, Role.REVIEWER):
        events = events.filter(annotator=user)
    return events.select_related("annotator").order_by("pk")


def given_up(query: Query) -> QueryTransition | None:
    """The handing in with which somebody asked to have the query rejected, while that waits."""
    if query.state != Query.State.SUBMITTED:
        return None
    last = query.transitions.select_related("made_by").last()
    return last if last is not None and last.reason else None


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How far two annotators agree on the images of a query that both judged."""

    first: str
    second: str
    """Their names, in order."""
    agreement: Agreement


def agreements_of(query: Query) -> list[PairAgreement]:
    """Cohen's kappa of every two annotators who share an image, those who share most first.

    One SQL query, over the images that several people judged.
    """
    several = (
        Judgment.objects.filter(query=query)
        .order_by()
        .values("image")
        .annotate(votes=Count("pk"))
        .filter(votes__gt=1)
        .values("image")
    )
    rows = (
        Judgment.objects.filter(query=query, image__in=several)
        .order_by("image_id", "annotator__username")
        .values_list("image_id", "annotator__username", "relevance")
    )
    shared: defaultdict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for _, votes in groupby(rows, key=itemgetter(0)):
        for (_, first, one), (_, second, other) in combinations(votes, 2):
            shared[first, second].append((one, other))
    found = [PairAgreement(*names, agreement(pairs)) for names, pairs in shared.items()]
    found.sort(key=lambda pair: (-pair.agreement.images, pair.first, pair.second))
    return found
