"""Whether two measures, or two releases, put runs in the same order: Kendall's tau-b.

Source: Chun et al. 2022, "ECCV Caption", section 5 and table 5, which asks whether metrics rank
methods alike; Kendall 1945 for the variant b, which allows for ties.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

Column = Mapping[Hashable, float | None]


@dataclass(frozen=True, slots=True)
class Correlations:
    """A symmetric matrix over m columns."""

    names: list[str]
    """(m)"""
    taus: list[list[float | None]]
    """(m, m) from -1 to 1; None where it isn't defined: fewer than two items, or all equal."""
    counts: list[list[int]]
    """(m, m) how many items both columns have."""


def correlations(columns: Mapping[str, Column]) -> Correlations:
    """Of columns by name, each with a number for items: a measure's mean for each run, or a
    release's for each method.

    Two columns are compared on the items that both have; None and NaN count as not there.
    """
    names = list(columns)
    known = {name: _known(columns[name]) for name in names}
    pairs = {
        (one, other): [item for item in known[one] if item in known[other]]
        for one in names
        for other in names
    }
    return Correlations(
        names=names,
        taus=[
            [
                tau_b(
                    [known[one][item] for item in pairs[one, other]],
                    [known[other][item] for item in pairs[one, other]],
                )
                for other in names
            ]
            for one in names
        ],
        counts=[[len(pairs[one, other]) for other in names] for one in names],
    )


def tau_b(first: list[float], second: list[float]) -> float | None:
    """Kendall's tau-b of two lists of the same length; None where it isn't defined."""
    if len(first) < 2 or len(set(first)) < 2 or len(set(second)) < 2:
        return None
    # It takes a second to import.
    from scipy.stats import kendalltau

    return float(kendalltau(first, second, variant="b").statistic)


def _known(column: Column) -> dict[Hashable, float]:
    return {
        item: float(value)
        for item, value in column.items()
        if value is not None and not math.isnan(value)
    }
