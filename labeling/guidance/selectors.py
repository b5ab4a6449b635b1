"""What new annotators read, and the images that they practice with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random
from typing import Any, Final

from django.conf import settings
from django.db.models import QuerySet
from django.template.loader import render_to_string

from core.access import Role, role_of
from labeling.guidance.models import HowToLabel, Introduction
from labeling.judging.consensus import Vote, consensus_by_key
from labeling.judging.models import Judgment
from labeling.queries.models import Query, QueryExample
from retrieval.flags.selectors import is_withdrawn

PRACTICE_IMAGES: Final = 20


def how_to_label_text() -> str:
    """The text of “How to label” in Markdown: the admins', or the default."""
    written = HowToLabel.objects.filter(id=1).values_list("text", flat=True).first()
    return written or default_text()


def default_text() -> str:
    """The text of “How to label” until an admin writes another."""
    return render_to_string("labeling/how_to_label.md", {"stop_streak": settings.STOP_STREAK})


def introduction_of(user: Any) -> Introduction | None:
    """How far a person is introduced, with the query of the last practice; None: not at all."""
    return Introduction.objects.select_related("query").filter(user=user).first()


def needs_introduction(user: Any) -> bool:
    """Whether the dashboard shows “How to label”: to annotators until they close it or practice."""
    closed = Introduction.objects.filter(user=user, closed_at__isnull=False)
    return role_of(user) == Role.ANNOTATOR and not closed.exists()


def practice_queries() -> QuerySet[Query]:
    """The queries whose labels every annotator may practice with: those that an admin chose, as
    long as they are complete and of the validation split.
    """
    return practicable_queries().filter(for_practice__isnull=False)


def practicable_queries() -> QuerySet[Query]:
    """The queries that an admin may choose for practice."""
    return Query.objects.filter(state=Query.State.COMPLETE, split=Query.Split.VAL)


def practice_labels(query: Query, images: Collection[int] | None = None) -> dict[int, bool]:
    """Whether each judged image (of `images`) is relevant, without withdrawn ones and those whose
    label is in doubt: unsure or a tie.
    """
    votes = Judgment.objects.filter(~is_withdrawn("image"), query=query)
    if images is not None:
        votes = votes.filter(image__in=images)
    rows = votes.order_by("image_id").values_list(
        "image_id", "annotator_id", "annotator__role", "relevance", "updated_at"
    )
    agreed = consensus_by_key((image, Vote(*rest)) for image, *rest in rows)
    return {
        image: found.relevant
        for image, found in agreed
        if not found.unsure and found.decided_by != "tie"
    }


def practice_notes(query: Query) -> dict[tuple[int, bool], str]:
    """Why a pinned example (image id, relevant) is what it is, where its note says so."""
    examples = QueryExample.objects.filter(query=query).exclude(note="")
    return {
        (image, relevant): note
        for image, relevant, note in examples.values_list("image_id", "relevant", "note")
    }


def practice_draw(
    labels: Mapping[int, bool], notes: Collection[tuple[int, bool]], seed: str
) -> list[int]:
    """Draw PRACTICE_IMAGES images, or all if there are fewer: half of them relevant where there are
    so many, first those with a note, else at random from the seed; in random order.
    """
    random = Random(seed)
    sides = []
    for kind in (True, False):
        images = sorted(image for image, relevant in labels.items() if relevant is kind)
        random.shuffle(images)
        sides.append(sorted(images, key=lambda image: (image, kind) not in notes))
    relevant, others = sides
    half = PRACTICE_IMAGES // 2
    drawn = relevant[: max(half, PRACTICE_IMAGES - len(others))]
    drawn += others[: PRACTICE_IMAGES - len(drawn)]
    random.shuffle(drawn)
    return drawn
