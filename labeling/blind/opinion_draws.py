"""Which first labels get a second opinion: shares of the relevant and the not relevant by a keyed
hash, a share of its own of the images of look-alikes, and the not relevant nearest to where
relevant and not relevant meet.

The hash is `audits.draws`'s under a key of its own, so that what is drawn says nothing of audits,
and nobody can tell beforehand whose label will be looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labeling.audits.draws import selected


@dataclass(frozen=True, slots=True)
class FirstLabel:
    """An image that one person alone has judged."""

    image_id: int
    relevant: bool
    score: float | None
    """Cosine similarity to the query's text; None outside the list."""
    lookalike: bool = False
    """Whether it shows a species that is taken for others, where the query is about species."""


@dataclass(frozen=True, slots=True)
class LabelChoice:
    """A label to ask a second person for."""

    image_id: int
    probability: float | None
    """With which the hash chose it; None where it is only near the boundary."""
    boundary: bool


def choose_labels(
    labels: Sequence[FirstLabel],
    *,
    key: bytes,
    query_id: int,
    positive: float,
    negative: float,
    lookalike: float,
    boundary: int,
) -> list[LabelChoice]:
    """The labels to ask a second person for, in the order given.

    `positive` and `negative` are the shares of the relevant and of the others, 0..1, and
    `lookalike` that of look-alikes where it is larger. `boundary` of
    the others are those whose scores are nearest to the boundary, ties by image id: the score above
    which as many images lie as are relevant, so that as many are wrong on either side of it.
    """
    near = _nearest(labels, boundary)
    choices = []
    for label in labels:
        share = positive if label.relevant else negative
        if label.lookalike:
            share = max(share, lookalike)
        drawn = selected(key, query_id, label.image_id, share)
        if drawn or label.image_id in near:
            probability = share if drawn else None
            choices.append(LabelChoice(label.image_id, probability, label.image_id in near))
    return choices


def _nearest(labels: Sequence[FirstLabel], count: int) -> set[int]:
    scored = [
        (label.score, label.relevant, label.image_id) for label in labels if label.score is not None
    ]
    relevant = sum(positive for _, positive, _ in scored)
    if not relevant:
        return set()
    boundary = sorted((score for score, _, _ in scored), reverse=True)[relevant - 1]
    apart = sorted((abs(score - boundary), pk) for score, positive, pk in scored if not positive)
    return {image_id for _, image_id in apart[:count]}
