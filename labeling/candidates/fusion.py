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
#: So many of each model's first images are in every pooled list.
GUARANTEED: Final = 50


def fused(rankings: Sequence[Sequence[int]]) -> list[tuple[int, float]]:
    """(image id, score) of all images of the rankings (ids, best first), best first, ties by image
    id. The score is the exact sum's nearest double.
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


def first_places(rankings: Sequence[Sequence[int]], judged: Collection[int]) -> set[int]:
    """The images that come before all others, of added models' rankings: those among the first
    GUARANTEED of one that nobody had judged.
    """
    return guaranteed(rankings).difference(judged)


def put_first(
    order: Sequence[tuple[int, float]], first: Collection[int]
) -> list[tuple[int, float]]:
    """The order with these images before the others, else as it was."""
    return sorted(order, key=lambda place: place[0] not in first)


def list_size(
    order: Sequence[tuple[int, float]], rankings: Sequence[Sequence[int]], depth: int
) -> int:
    """How many images a list of this depth holds: more where it would end before a guaranteed
    one.
    """
    wanted = guaranteed(rankings)
    last = max((n for n, (one, _) in enumerate(order, start=1) if one in wanted), default=0)
    return min(max(depth, last), len(order))


def guaranteed(rankings: Sequence[Sequence[int]]) -> set[int]:
    """The images among the first GUARANTEED of a ranking."""
    return {image_id for ranking in rankings for image_id in ranking[:GUARANTEED]}
