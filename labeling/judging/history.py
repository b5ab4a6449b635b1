from __future__ import annotations

from typing import Any

from django.db.models import F, QuerySet

from core.access import Role, at_least
from labeling.judging.access import queries_visible_to
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.queries.models import Query


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
