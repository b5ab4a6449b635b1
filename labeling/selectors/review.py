"""What a reviewer looks at: unsure images, disagreements, and how a judgment came about."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q, QuerySet

from labeling.access import queries_visible_to
from labeling.consensus import Vote, consensus
from labeling.models import Candidate, Judgment, JudgmentEvent, Query, Relevance
from retrieval.access import Role, at_least
from retrieval.models import Image


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One image that a reviewer should decide, with everybody's standing judgment."""

    image: Image
    rank: int | None
    """In the query's current list."""
    votes: list[Judgment]
    unsure: bool
    """Whether the consensus is unsure; else annotators disagree."""


def images_to_review(query: Query) -> list[ReviewItem]:
    """Images of a query that are unsure, or on which annotators disagree and no reviewer has
    decided; in list order.
    """
    doubtful = (
        Judgment.objects.filter(query=query)
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
            items.append(ReviewItem(given[0].image, ranks.get(image_id), given, agreed.unsure))
    items.sort(key=lambda item: (item.rank is None, item.rank or 0, item.image.pk))
    return items


def judgments_visible_to(user: Any, query: Query) -> QuerySet[Judgment]:
    """The standing judgments of a query by rank: all for reviewers, an annotator's own."""
    judgments = Judgment.objects.filter(query=query).select_related("annotator")
    if not queries_visible_to(user).filter(pk=query.pk).exists():
        return judgments.none()
    if not at_least(user, Role.REVIEWER):
        judgments = judgments.filter(annotator=user)
    return judgments.order_by(F("rank").asc(nulls_last=True), "image_id", "annotator_id")


def judgment_history(query: Query, image: Image, user: Any) -> QuerySet[JudgmentEvent]:
    """Every act of judging this image for this query, the oldest first; an annotator sees their
    own.
    """
    visible = judgments_visible_to(user, query).filter(image=image)
    return (
        JudgmentEvent.objects.filter(judgment__in=visible.order_by())
        .select_related("annotator")
        .order_by("pk")
    )
