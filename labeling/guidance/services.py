"""Changes of the page "How to label", of the practice queries, and of people's introductions."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from core.errors import Conflict
from labeling.candidates.services import lock_query
from labeling.guidance.models import HowToLabel, Introduction
from labeling.guidance.selectors import practicable_queries
from labeling.queries.models import Query


def how_to_label_save(*, text: str, by: Any) -> None:
    """Replace the page's text; an empty text restores the default."""
    HowToLabel.objects.update_or_create(id=1, defaults={"text": text, "changed_by": by})


@transaction.atomic
def practice_query_set(*, query: Query, use: bool) -> None:
    """Let people practice with a query's labels, or stop that. Conflict: it isn't a completed query
    of the validation split, so its labels are hidden or not settled. Raises QueryGone.
    """
    query = lock_query(query)
    if use and not practicable_queries().filter(pk=query.pk).exists():
        raise Conflict("Only completed queries of the validation split are for practice.")
    Query.objects.filter(pk=query.pk).update(for_practice=use)


@transaction.atomic
def introduction_close(*, user: Any) -> None:
    """Remember that a person has read “How to label”."""
    Introduction.objects.get_or_create(user=user)
    Introduction.objects.filter(user=user, closed_at=None).update(closed_at=timezone.now())


@transaction.atomic
def practice_record(*, user: Any, images: int, right: int) -> None:
    """Store the score of a person's practice in place of the one before."""
    introduction_close(user=user)
    score = {"images": images, "right": right, "practiced_at": timezone.now()}
    Introduction.objects.filter(user=user).update(**score)
