"""Which first labels get a second opinion: shares of the relevant and the not relevant by a keyed
hash, a share of its own of the images of look-alikes, and the not relevant nearest to where
relevant and not relevant meet.

The hash is `audits.draws`'s under a key of its own, so that what is drawn says nothing of audits,
and nobody can tell beforehand whose label will be looked at again.

A label with the hash number u (0..1) and the share p has the ratio u / p, and the hash draws the
labels whose ratio is below a threshold: 1, unless that draws too many or too few. Then the
threshold is the ratio of the first label that is not drawn, and weights of 1 / (p * threshold) give
unbiased sums (N. Duffield, C. Lund and M. Thorup, "Priority sampling for estimation of arbitrary
subset sums", 2007): whether a label is drawn depends on the other labels' numbers only through the
threshold, and its own number doesn't change the threshold while it is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from labeling.audits.draws import draw_number


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


@dataclass(frozen=True, slots=True)
class OpinionShares:
    """With which probability the hash draws a label, each 0..1."""

    positive: float
    """Of the relevant labels."""
    negative: float
    """Of the others."""
    lookalike: float = 0.0
    """Of the images of look-alikes, where it is larger."""

    def of(self, *, relevant: bool, lookalike: bool) -> float:
        """The share of such labels."""
        share = self.positive if relevant else self.negative
        return max(share, self.lookalike) if lookalike else share


def choose_labels(
    labels: Sequence[FirstLabel],
    *,
    key: bytes,
    query_id: int,
    shares: OpinionShares,
    boundary: int,
    least: int = 0,
    most: int | None = None,
    threshold: float = 1.0,
) -> list[LabelChoice]:
    """The labels to ask a second person for, in the order given: at least `least` and at most
    `most`, as far as there are labels with a share.

    The hash draws first. `boundary` of the not relevant labels, at most what `most` leaves, are
    those whose scores are nearest to the boundary, ties by image id: the score above which as many
    images lie as are relevant, so that as many are wrong on either side of it. `threshold` is that
    of an earlier draw among the same labels, which a later one must not exceed.
    """
    nearest = _nearest(labels, boundary)
    most = len(labels) if most is None else min(most, len(labels))
    ratios = {}
    for label in labels:
        if share := shares.of(relevant=label.relevant, lookalike=label.lookalike):
            number = draw_number(key, query_id, label.image_id) / 2.0**64
            ratios[label.image_id] = (number / share, share)
    in_order = [*sorted(ratio for ratio, _ in ratios.values()), *[inf] * (len(labels) + 1)]
    threshold = min(threshold, in_order[most])
    # What the boundary's labels leave to draw; the hash has no part in their number.
    if wanting := min(max(least - len(nearest), 0), most):
        threshold = max(threshold, in_order[wanting])
    drawn = {
        image_id: min(share * threshold, 1.0)
        for image_id, (ratio, share) in ratios.items()
        if ratio < threshold
    }
    near = set(drawn) & set(nearest)
    near.update([pk for pk in nearest if pk not in drawn][: most - len(drawn)])
    return [
        LabelChoice(label.image_id, drawn.get(label.image_id), label.image_id in near)
        for label in labels
        if label.image_id in drawn or label.image_id in near
    ]


def _nearest(labels: Sequence[FirstLabel], count: int) -> list[int]:
    scored = [
        (label.score, label.relevant, label.image_id) for label in labels if label.score is not None
    ]
    relevant = sum(positive for _, positive, _ in scored)
    if not relevant:
        return []
    boundary = sorted((score for score, _, _ in scored), reverse=True)[relevant - 1]
    apart = sorted((abs(score - boundary), pk) for score, positive, pk in scored if not positive)
    return [image_id for _, image_id in apart[:count]]
