"""Making blind items, at places that chance chooses."""

from __future__ import annotations

from collections.abc import Mapping
from random import SystemRandom
from typing import Any, Final

from django.db.models import Max

from labeling.judging.blind import BlindKind
from labeling.judging.models import BlindItem
from labeling.queries.models import Query

PLACES: Final = 2**62
RANDOM: Final = SystemRandom()


def blind_item(kind: BlindKind, **fields: Any) -> BlindItem:
    """A new item, not stored yet, at a random place."""
    return BlindItem(kind=kind.name, place=RANDOM.randrange(PLACES), **fields)


def known_images_mix(
    kind: BlindKind,
    query: Query,
    annotator: Any,
    *,
    answers: Mapping[int, str],
    count: int,
    **fields: Any,
) -> None:
    """Mix so many of the images with known answers into what waits for the person of items with
    these fields, behind what anybody was shown: who has seen the queue before would know new images
    in its midst.
    """
    shown = query.blind_items.filter(kind=kind.name, displayed_at__isnull=False, **fields)
    last = shown.aggregate(last=Max("place"))["last"]
    first = 0 if last is None else last + 1
    BlindItem.objects.bulk_create(
        BlindItem(
            kind=kind.name,
            query=query,
            image_id=image_id,
            only_for=annotator,
            relevance=answers[image_id],
            place=RANDOM.randrange(first, PLACES + 1),
            **fields,
        )
        for image_id in RANDOM.sample(sorted(answers), min(count, len(answers)))
    )
