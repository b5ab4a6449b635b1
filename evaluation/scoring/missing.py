"""How far relevant images that no label knows of could move the scores of runs.

A certificate bounds how many relevant images the labels miss, not which. So a score becomes a
range: from the lowest to the highest that it can be if at most m images that may be relevant are.
With j of them among a run's first k, AP, nDCG and R are highest where these have the first of the
ranks that they can have, and lowest where they have the last, since none of the three falls when a
relevant image moves up; those beyond k only raise the denominator. All numbers up to m are tried,
since the denominator grows with them.

The mean over queries is lowest, and highest, over all ways to share M missing images among them:
the exact optimum by dynamic programming over the queries. Relevance is binary, and which queries
are scored, those with a relevant image, doesn't change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.scoring.measures import MAX_CUT, Measure
from evaluation.scoring.metrics import Floats, Integers, discounts, ideal_gain
from evaluation.scoring.rounding import UNIT
from evaluation.scoring.significance import LEVEL, SAMPLES, resamples

Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FirstImages:
    """The first n <= k images of a run for a query, best first."""

    image_ids: Integers
    """(n,)"""
    relevant: Booleans
    """(n,) by the labels."""
    possible: Booleans
    """(n,) whether the image may be relevant though no label says so."""
    total: int
    """R, how many images of the query are relevant by the labels, from 1."""
    beyond: int
    """How many other images may be relevant though no label says so."""


@dataclass(frozen=True, slots=True)
class _Bounded:
    """A measure as a sum over ranks, over a denominator that depends on R alone."""

    gain: Callable[[Booleans], Floats]
    """The sums (...) of rankings (..., n)."""
    ideal: Callable[[Integers, int], Floats | Integers]
    """The denominators (...) of R (...), at the cut-off."""
    shared: bool = False
    """Whether each relevant image also adds 1 / rank to those below it."""


def _precision_sum(relevant: Booleans) -> Floats:
    ranks = np.arange(1, relevant.shape[-1] + 1)
    sums: Floats = (np.cumsum(relevant, axis=-1) * relevant / ranks).sum(axis=-1)
    return sums


def _discounted_gain(relevant: Booleans) -> Floats:
    sums: Floats = relevant @ discounts(np.arange(1, relevant.shape[-1] + 1))
    return sums


def _ideal_gain(totals: Integers, k: int) -> Floats:
    return ideal_gain(totals, np.asarray(k))


def _count(relevant: Booleans) -> Floats:
    sums: Floats = relevant.sum(axis=-1, dtype=np.float64)
    return sums


_BOUNDED: Final = {
    "AP@k": _Bounded(_precision_sum, lambda totals, k: np.minimum(totals, k), shared=True),
    "nDCG@k": _Bounded(_discounted_gain, _ideal_gain),
    "R@k": _Bounded(_count, lambda totals, _: totals),
}


def has_range(measure: Measure) -> bool:
    """Whether scores of a measure have a range here: AP, nDCG and R with a cut-off."""
    return measure.kind.pattern in _BOUNDED


def score_range(first: FirstImages, measure: Measure, most: int) -> Floats:
    """(2, most + 1): the lowest and the highest score if at most m images are missing, for each m
    from 0 to `most`. KeyError: the measure has no range."""
    rows = _scores(first, measure, most)
    return np.stack([np.minimum.accumulate(rows[0]), np.maximum.accumulate(rows[1])])


def least_difference(
    first: FirstImages, second: FirstImages, measure: Measure, most: int
) -> Floats:
    """(most + 1,): what the first run's score is ahead of the second's at least if at most m images
    are missing, for each m from 0 to `most`; negative where it may fall behind.

    The same images are missing for both, and the denominators are the same. Exact for nDCG and R,
    where each image has its own part of the difference; for AP a lower bound, as images further up
    add to the parts of those below: in the second run as much as they can, in the first nothing.
    """
    alone = _scores(first, measure, most)[0] - _scores(second, measure, most)[1]
    shared = _shared_difference(first, second, measure, most)
    bound: Floats = np.minimum.accumulate(np.maximum(alone, shared))
    return bound


def least_mean_difference(
    first: Sequence[FirstImages], second: Sequence[FirstImages], measure: Measure, most: int
) -> float:
    """What the first run's mean over s queries is ahead of the second's at least if at most `most`
    images are missing in all: a lower bound, see `least_difference`. It is 0 where rounding alone
    could make it positive or negative, so that runs with equal means are never ahead.

    A part of a difference is from -2 to 1 times the denominator, and p = min(most, 2 k) parts at
    most are added. With n = k, each gain has an error of at most (n + 9) u times the denominator
    (`rounding`), so a part one of (4 n + 42) u, and the sum of p parts one of p (4 n + 2 p + 46) u;
    the known gains add (2 n + 21) u. Two scores by themselves, the other bound, are within
    (4 n + 129) u. So (p + 1) (4 n + 2 p + 130) u is more than either, and the mean adds s u.
    """
    tables = [least_difference(a, b, measure, most) for a, b in zip(first, second, strict=True)]
    least = lowest_mean(np.stack(tables), most)
    terms, parts = measure.k or MAX_CUT, min(most, 2 * (measure.k or MAX_CUT))
    margin = ((parts + 1) * (4 * terms + 2 * parts + 130) + len(tables)) * UNIT
    return least if abs(least) > margin else 0.0


def lowest_mean(tables: Floats, most: int) -> float:
    """The lowest mean over s queries if at most `most` images are missing in all.

    `tables` (s, most + 1) hold each query's lowest value if at most m images are missing, for each
    m. ValueError: no query.
    """
    if not len(tables):
        raise ValueError("there is no query to average over")
    totals = np.zeros(most + 1)
    budgets = np.arange(most + 1)
    for table in tables:
        # Where more missing images change nothing, none are spent.
        steps = np.flatnonzero(np.diff(table, prepend=np.inf))
        rest = budgets - steps[:, np.newaxis]
        sums = np.where(rest >= 0, totals[rest] + table[steps, np.newaxis], np.inf)
        totals = sums.min(axis=0)
    return float(totals[most]) / len(tables)


def mean_range(tables: Floats, most: int) -> tuple[float, float]:
    """The lowest and the highest mean over s queries of which at most `most` images are missing in
    all, from their `score_range`s (s, 2, most + 1)."""
    return lowest_mean(tables[:, 0], most), -lowest_mean(-tables[:, 1], most)


def range_with_queries(tables: Floats, most: int) -> tuple[float, float]:
    """The interval of a mean by both doubts, from the `score_range`s (s, 2, most + 1) of s queries:
    the 95 % bootstrap interval of every completion, with whichever images missing, lies within it.

    In every sample of queries a completion's mean is at least the lowest that there is for this
    sample, and a quantile isn't lowered where no number is; so a quantile of these lowest means is
    at most that of the completion's. Likewise the other end.
    """
    tail = (1 - LEVEL) / 2
    lows, highs = _least_of_samples(tables[:, 0], most), -_least_of_samples(-tables[:, 1], most)
    return float(np.quantile(lows, tail)), float(np.quantile(highs, 1 - tail))


def _least_of_samples(tables: Floats, most: int) -> Floats:
    """A lower bound of the lowest mean in each of the bootstrap's samples of queries.

    A query that is drawn t times adds t times its value v(m), while its m missing images count
    once. For any price from 0 of a missing image, the sum of t v(m) is at least the sum of each
    query's least t v(m) + price m, less the price of `most` images (Lagrangian relaxation). The
    price is the best one for the queries drawn once each; price 0 takes each query by itself.
    """
    images = np.arange(most + 1)
    prices = [0.0, *np.geomspace(1e-5, 1, 41).tolist()]
    price = max(prices, key=lambda one: (tables + one * images).min(axis=1).sum() - one * most)
    alone, queries = tables.min(axis=1), np.arange(len(tables))
    least = np.empty(SAMPLES)
    for part, times in resamples(len(tables)):
        weights = np.arange(times.max() + 1)[:, np.newaxis, np.newaxis]
        paid = (weights * tables + price * images).min(axis=2)
        sums = np.maximum(paid[times, queries].sum(axis=1) - price * most, times @ alone)
        least[part] = sums / len(tables)
    return least


def _scores(first: FirstImages, measure: Measure, most: int) -> Floats:
    """(2, most + 1): the lowest and the highest score if m images are missing, neither more nor
    fewer; beyond the last m that can be, as of that one."""
    bounded = _BOUNDED[measure.kind.pattern]
    inside = int(first.possible.sum())
    missing = np.minimum(np.arange(most + 1), inside + first.beyond)
    ideal = bounded.ideal(first.total + missing, measure.k or 0)
    places = np.cumsum(first.possible)
    added = np.arange(min(most, inside) + 1)[:, np.newaxis]
    top = bounded.gain(first.relevant | (first.possible & (places <= added)))
    # So many must be among the first k, since there is no room for them elsewhere.
    forced = np.maximum(missing - first.beyond, 0)
    added = np.arange(forced.max() + 1)[:, np.newaxis]
    bottom = bounded.gain(first.relevant | (first.possible & (places > inside - added)))
    scores: Floats = np.stack([bottom[forced], top[np.minimum(missing, inside)]]) / ideal
    return scores


def _shared_difference(
    first: FirstImages, second: FirstImages, measure: Measure, most: int
) -> Floats:
    """(most + 1,): a lower bound of the difference if m images are missing, from what each of them
    adds to the first score at least and to the second at most."""
    bounded = _BOUNDED[measure.kind.pattern]
    images = np.union1d(first.image_ids[first.possible], second.image_ids[second.possible])
    elsewhere = int(first.possible.sum()) + first.beyond - len(images)
    missing = np.minimum(np.arange(most + 1), len(images) + elsewhere)
    # With more of them than there are images, what each adds stays the same.
    numbers = np.arange(min(most, len(images)) + 1)
    parts = np.zeros((len(numbers), len(images)))
    parts[:, _columns(images, first)] += _added_alone(first, bounded)
    parts[:, _columns(images, second)] -= _added_alone(second, bounded)
    if bounded.shared:
        above = np.arange(second.possible.sum())
        others = np.minimum(np.maximum(numbers - 1, 0)[:, np.newaxis], above)
        parts[:, _columns(images, second)] -= others / (np.flatnonzero(second.possible) + 1)
    sums = np.cumsum(np.sort(parts, axis=1), axis=1)
    sums = np.concatenate([np.zeros((len(numbers), 1)), sums], axis=1)
    # As many as lower the difference, the rest elsewhere as far as there is room.
    lowering = np.count_nonzero(parts < 0, axis=1)
    rows = np.minimum(missing, len(numbers) - 1)
    taken = np.clip(lowering[rows], missing - elsewhere, np.minimum(missing, len(images)))
    before = bounded.gain(first.relevant) - bounded.gain(second.relevant)
    ideal = bounded.ideal(first.total + missing, measure.k or 0)
    difference: Floats = (before + sums[rows, np.maximum(taken, 0)]) / ideal
    return difference


def _columns(images: Integers, run: FirstImages) -> Integers:
    """The places of a run's possible images among `images`, which are ascending."""
    columns: Integers = np.searchsorted(images, run.image_ids[run.possible])
    return columns


def _added_alone(run: FirstImages, bounded: _Bounded) -> Floats:
    """What each of a run's possible images adds to the sum if it alone is relevant beside those
    that are known."""
    alone = run.relevant | np.eye(len(run.relevant), dtype=np.bool_)[run.possible]
    added: Floats = bounded.gain(alone) - bounded.gain(run.relevant)
    return added
