"""What researchers see of a test split whose labels are hidden: two means for each run.

Single scores, means over few queries and exact means reveal labels: from P, AP and nDCG of one
query at a few cut-offs its labels can be computed. So only the means below are shown, over all
queries together and rounded; docs/test-labels.md estimates what they still reveal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.scoring import significance

Floats = npt.NDArray[np.float64]

#: The measures that are shown. Listed here, so that a change of the headlines can't change them.
MEASURES: Final = ("AP@50", "nDCG@50")
#: The fewest images that runs rank for each test query: the cut-off of `MEASURES`.
DEPTH: Final = 50
#: With fewer scored queries nothing is shown.
FEWEST_QUERIES: Final = 10
TOO_FEW_SENTENCE: Final = (
    f"The labels of the test split are hidden, and with fewer than {FEWEST_QUERIES} scored queries "
    "no score is shown."
)
BEST_HIDDEN_SENTENCE: Final = (
    "The labels of the test split are hidden, and the scores of this re-rank are its first stage’s "
    "recall, so none is shown."
)
#: Decimals of a score from 0 to 1: 0.1 points.
DECIMALS: Final = 3


class LabelsHidden(Exception):
    """The figure would reveal labels of the test split."""

    def __init__(self) -> None:
        super().__init__("This release keeps the labels of its test split hidden.")


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of r runs over all test queries, by measure."""

    means: Mapping[str, Floats]
    """(r,) rounded."""
    intervals: Mapping[str, Floats]
    """(r, 2) the 95 % bootstrap interval of each mean, rounded."""
    groups: Mapping[str, Mapping[int, str]]
    """Row -> letters: runs that share a letter don't differ significantly."""


def rounded(scores: npt.ArrayLike) -> Floats:
    """Scores from 0 to 1, rounded to 0.1 points."""
    exact: Floats = np.asarray(scores, dtype=np.float64)
    return exact.round(DECIMALS)


def summarize(values: Mapping[str, Floats]) -> Summary:
    """The summary of per-query scores (r, q) by measure; measures that aren't in `MEASURES` are
    left out.

    It doesn't depend on the order of the queries.
    """
    means, intervals, groups = {}, {}, {}
    for key in MEASURES:
        if key not in values or not len(values[key]):
            continue
        scores = values[key][:, np.lexsort(values[key])]
        means[key] = rounded(scores.mean(axis=1))
        intervals[key] = rounded(significance.bootstrap_intervals(scores))
        complete = np.flatnonzero(~np.isnan(scores).any(axis=1))
        letters = significance.letters(significance.groups(scores[complete]), len(complete))
        groups[key] = dict(zip(complete.tolist(), letters, strict=True))
    return Summary(means, intervals, groups)
