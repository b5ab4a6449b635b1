"""How far people agree over many images, and what that says of each of them.

Sources: K. Krippendorff, "Computing Krippendorff's alpha-reliability" (2011), for nominal data;
D. Cicchetti and A. Feinstein, "High agreement but low kappa, II" (1990), for the agreement of one
category; A. Dawid and A. Skene, "Maximum likelihood estimation of observer error-rates using the EM
algorithm" (1979).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

RESAMPLES: Final = 1000
SEED: Final = 1979
#: EM ends once no estimate changes by more, or after so many steps.
TOLERANCE: Final = 1e-7
MOST_STEPS: Final = 1000


@dataclass(frozen=True, slots=True)
class Reliability:
    """The agreement of several people over items of which at least two judged each.

    With weights each is an estimate for the items that those of positive weight were drawn from.
    """

    items: int
    """Items that at least two people judged."""
    alpha: float | None
    """Krippendorff's, at most 1; None where every judgment is the same or there is none."""
    low: float | None
    high: float | None
    """The 95 % percentile interval of alpha over resampled items; None where alpha is."""
    raw: float | None
    """The share of pairs of judgments that are the same, 0..1; None without items."""
    positive: float | None
    """Of the last category: with which probability another judgment of an item is of it where one
    is, 0..1; None where none is."""


def reliability(counts: ArrayLike, weights: ArrayLike | None = None) -> Reliability:
    """The agreement in (items, categories) numbers of judgments, the last category the positive
    one.

    `weights` (items,) are inverse inclusion probabilities. Items that fewer than two judged say
    nothing and are passed over. The interval is the bootstrap's: RESAMPLES times as many items,
    drawn with replacement from SEED, so that the same judgments have the same interval.
    ValueError: a negative number or weight.
    """
    table = np.atleast_2d(np.asarray(counts, np.float64))
    given = np.ones(len(table)) if weights is None else np.asarray(weights, np.float64)
    if (table < 0).any() or (given < 0).any():
        raise ValueError("counts and weights must not be negative")
    paired = table.sum(axis=1) >= 2
    if not paired.any():
        return Reliability(0, None, None, None, None, None)
    # Items that look alike are one row, so that resampling takes as long as there are rows.
    rows, times = np.unique(
        np.column_stack([table[paired], given[paired]]), axis=0, return_counts=True
    )
    table, given = rows[:, :-1], rows[:, -1]
    items = int(times.sum())
    sums = _sums(table) * given[:, None]
    alpha = _alpha((times @ sums)[None])[0]
    drawn = np.random.default_rng(SEED).multinomial(items, times / items, size=RESAMPLES)
    resampled = _alpha(drawn @ sums)
    low, high = np.nanpercentile(resampled, (2.5, 97.5)) if not np.isnan(alpha) else (np.nan,) * 2
    same = table * (table - 1) / (table.sum(axis=1, keepdims=True) - 1)
    share = times * given
    return Reliability(
        items=items,
        alpha=_known(alpha),
        low=_known(low),
        high=_known(high),
        raw=_ratio(float(share @ same.sum(axis=1)), float(share @ table.sum(axis=1))),
        positive=_ratio(float(share @ same[:, -1]), float(share @ table[:, -1])),
    )


def _sums(table: Floats) -> Floats:
    """(items, 1 + categories): what each item adds to the disagreeing pairs, and to each category's
    number of judgments.
    """
    judged = table.sum(axis=1)
    apart = (judged**2 - (table**2).sum(axis=1)) / (judged - 1)
    return np.column_stack([apart, table])


def _alpha(sums: Floats) -> Floats:
    """(n,) alpha of each row of such sums; NaN where chance alone can't disagree."""
    apart, by_category = sums[:, 0], sums[:, 1:]
    judged = by_category.sum(axis=1)
    by_chance = judged**2 - (by_category**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha: Floats = np.where(by_chance > 0, 1 - (judged - 1) * apart / by_chance, np.nan)
    return alpha


def _known(number: float) -> float | None:
    return None if np.isnan(number) else float(number)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


@dataclass(frozen=True, eq=False, slots=True)
class ErrorRates:
    """What the judgments say of people and items if everybody errs independently of the others."""

    prevalence: Floats
    """(categories,) shares of the items, section 2's p_j."""
    confusion: Floats
    """(people, categories, categories): with which probability a person says the second category
    of an item of the first, section 2's π; zeros where they judged none."""
    posterior: Floats
    """(items, categories) probabilities."""


def error_rates(counts: ArrayLike, weights: ArrayLike | None = None) -> ErrorRates:
    """The maximum-likelihood estimates of Dawid and Skene from (items, people, categories) numbers
    of judgments, by EM from the shares of each item's judgments (equations 2.3 to 2.5 and 3.1).

    `weights` (items,) are inverse inclusion probabilities. Two people don't determine the rates:
    ask at least three. A diagnosis, never a label. ValueError: an item without judgments.
    """
    table = np.asarray(counts, np.float64)
    given = np.ones(len(table)) if weights is None else np.asarray(weights, np.float64)
    said = table.sum(axis=1)
    if not said.sum(axis=1).all():
        raise ValueError("every item needs a judgment")
    posterior = said / said.sum(axis=1, keepdims=True)
    for _ in range(MOST_STEPS):
        weighted = posterior * given[:, None]
        prevalence = weighted.sum(axis=0) / given.sum()
        confusion = np.einsum("ij,ikl->kjl", weighted, table)
        total = confusion.sum(axis=2, keepdims=True)
        confusion = np.divide(confusion, total, out=np.zeros_like(confusion), where=total > 0)
        # A category that a person never met says nothing of an item that they judged.
        likely = np.where(total > 0, confusion, 1.0)
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(likely, np.finfo(np.float64).tiny))
            scores = np.log(prevalence) + np.einsum("ikl,kjl->ij", table, logs)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        before, posterior = posterior, scores / scores.sum(axis=1, keepdims=True)
        if np.abs(posterior - before).max() <= TOLERANCE:
            break
    return ErrorRates(prevalence, confusion, posterior)
