"""The order of a pooled list: reciprocal rank fusion of several models' rankings.

Source: Cormack, Clarke and Büttcher 2009, "Reciprocal rank fusion outperforms Condorcet and
individual rank learning methods" (SIGIR): the sum over the models of 1 / (60 + rank), where an
image outside a model's ranking gets nothing from it. Sums are compared as fractions, so nothing is
rounded before images are ordered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import Final

K0: Final = 60
#: How many of each model's first images every pooled list holds.
GUARANTEED: Final = 50


def fuse(rankings: Sequence[Sequence[int]]) -> list[tuple[int, float]]:
    """(image id, score) of all images of the rankings (ids, best first), by falling score, ties by
    image id. The score is the double nearest to the exact sum.
    """
    longest = max(map(len, rankings), default=0)
    terms = [Fraction(1, K0 + rank) for rank in range(1, longest + 1)]
    sums: defaultdict[int, Fraction] = defaultdict(Fraction)
    for ranking in rankings:
        for image_id, term in zip(ranking, terms, strict=False):
            sums[image_id] += term
    # Rounding keeps the order of unequal sums or makes them equal, and then the fractions decide.
    scores = {image_id: float(total) for image_id, total in sums.items()}
    order = sorted(sums)
    order.sort(key=lambda image_id: (scores[image_id], sums[image_id]), reverse=True)
    return [(image_id, scores[image_id]) for image_id in order]


def first_unjudged(rankings: Sequence[Sequence[int]], judged: Collection[int]) -> set[int]:
    """The images that come before all others when models are added: those that nobody had judged
    among the first GUARANTEED of an added model's ranking.
    """
    return guaranteed_images(rankings).difference(judged)


def put_first(
    order: Sequence[tuple[int, float]], first: Collection[int]
) -> list[tuple[int, float]]:
    """The order with these images moved before the others; otherwise unchanged."""
    return sorted(order, key=lambda row: row[0] not in first)


def list_size(
    order: Sequence[tuple[int, float]], rankings: Sequence[Sequence[int]], depth: int
) -> int:
    """How many images a list of this depth holds: more if a guaranteed image would be beyond it."""
    guaranteed_ids = guaranteed_images(rankings)
    last = max(
        (n for n, (image_id, _) in enumerate(order, start=1) if image_id in guaranteed_ids),
        default=0,
    )
    return min(max(depth, last), len(order))


def guaranteed_images(rankings: Sequence[Sequence[int]]) -> set[int]:
    """The images among the first GUARANTEED of a ranking."""
    return {image_id for ranking in rankings for image_id in ranking[:GUARANTEED]}
