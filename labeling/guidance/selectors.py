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
from labeling.judging.consensus import consensus_by_key
from labeling.judging.models import Judgment
from labeling.judging.progress import votes_of
from labeling.queries.models import Query, QueryExample
from retrieval.flags.selectors import is_withdrawn

PRACTICE_IMAGES: Final = 20


def how_to_label_text() -> str:
    """The text of “How to label” in Markdown: the admins' text, or the default."""
    written = HowToLabel.objects.filter(id=1).values_list("text", flat=True).first()
    default = "labeling/how_to_label.md"
    return written or render_to_string(default, {"stop_streak": settings.STOP_STREAK})


def introduction_of(user: Any) -> Introduction | None:
    """A person's progress with the introduction; None if they haven't begun."""
    return Introduction.objects.filter(user=user).first()


def needs_introduction(user: Any) -> bool:
    """Whether the dashboard shows “How to label”: to annotators until they close it or practice."""
    closed = Introduction.objects.filter(user=user, closed_at__isnull=False)
    return role_of(user) == Role.ANNOTATOR and not closed.exists()


def practicable_queries() -> QuerySet[Query]:
    """The queries that an admin may choose for practice: none of the test split, whose labels stay
    hidden, and none of a benchmark with screening, whose images may show faces and addresses.
    """
    return Query.objects.filter(
        state=Query.State.COMPLETE, split=Query.Split.VAL, benchmark__screening=False
    )


def practice_queries() -> QuerySet[Query]:
    """The chosen queries, whose labels every annotator may practice with."""
    return practicable_queries().filter(for_practice=True)


def practice_labels(query: Query, images: Collection[int] | None = None) -> dict[int, bool]:
    """Whether each judged image (of `images`) is relevant; leaves out withdrawn images and those
    whose label is in doubt: unsure or a tie.
    """
    judgments = Judgment.objects.filter(~is_withdrawn("image"), query=query)
    if images is not None:
        judgments = judgments.filter(image__in=images)
    return {
        image_id: agreed.relevant
        for (_, image_id), agreed in consensus_by_key(votes_of(judgments))
        if not agreed.unsure and agreed.decided_by != "tie"
    }


def practice_notes(query: Query) -> dict[tuple[int, bool], str]:
    """Why a pinned example (image id, relevant) is what it is, where its note says so."""
    rows = QueryExample.objects.filter(query=query).exclude(note="")
    return {row[:2]: row[2] for row in rows.values_list("image_id", "relevant", "note")}


def practice_draw(
    labels: Mapping[int, bool], notes: Collection[tuple[int, bool]], seed: str
) -> list[int]:
    """Draw PRACTICE_IMAGES images, or all if there are fewer, in random order: half of them
    relevant if possible, images with a note first, the others at random from the seed.
    """
    random = Random(seed)
    images = random.sample(sorted(labels), len(labels))
    images.sort(key=lambda image: (image, labels[image]) not in notes)
    relevant = [image for image in images if labels[image]]
    others = [image for image in images if not labels[image]]
    drawn = relevant[: max(PRACTICE_IMAGES // 2, PRACTICE_IMAGES - len(others))]
    drawn += others[: PRACTICE_IMAGES - len(drawn)]
    random.shuffle(drawn)
    return drawn
