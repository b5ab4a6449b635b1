"""Changes of the page "How to label", of the practice queries, and of people's introductions."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from core.errors import Conflict
from labeling.candidates.services import lock_query
from labeling.guidance.models import HowToLabel, Introduction, PracticeQuery
from labeling.queries.models import Query


def how_to_label_save(*, text: str, by: Any) -> None:
    """Replace the page's text; an empty one is the default."""
    HowToLabel.objects.update_or_create(id=1, defaults={"text": text.strip(), "changed_by": by})


@transaction.atomic
def practice_query_choose(*, query: Query, by: Any) -> None:
    """Let people practice with a query's labels. Conflict: it isn't a completed one of the
    validation split, so that its labels are hidden or not settled. Raises QueryGone.
    """
    query = lock_query(query)
    if query.split != Query.Split.VAL:
        raise Conflict("Labels of the test split stay hidden, so nobody can practice with them.")
    if query.state != Query.State.COMPLETE:
        raise Conflict("Only completed queries have labels to practice with.")
    PracticeQuery.objects.get_or_create(query=query, defaults={"chosen_by": by})


def practice_query_remove(*, query: Query) -> None:
    """End the practice with a query."""
    PracticeQuery.objects.filter(query=query).delete()


def introduction_close(*, user: Any) -> None:
    """Remember that a person has read “How to label”."""
    Introduction.objects.get_or_create(user=user)
    Introduction.objects.filter(user=user, closed_at=None).update(closed_at=timezone.now())


@transaction.atomic
def practice_record(*, user: Any, query: Query, images: int, right: int) -> None:
    """Store the score of a person's practice in place of the one before."""
    introduction_close(user=user)
    Introduction.objects.filter(user=user).update(
        query=query, images=images, right=right, practiced_at=timezone.now()
    )
