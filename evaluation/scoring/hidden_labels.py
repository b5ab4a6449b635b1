"""What researchers see of a test split whose labels are hidden: two means for each run.

Single scores, means over few queries and exact means reveal labels: from P, AP and nDCG of one
query at a few cut-offs its labels can be computed. So only the means below are shown, over all
queries together and rounded; docs/test-labels.md estimates what they still reveal.

A release may divide the split into a public and a private half: then the means are over the public
half, and once its board closes also over the private one.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.scoring import significance
from evaluation.scoring.measures import parse_measure
from evaluation.scoring.rounding import mean_margin, score_error, settled

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
PUBLIC: Final = "public"
PRIVATE: Final = "private"
#: The halves of a divided test split, with their titles.
HALVES: Final = {PUBLIC: "Public half of test", PRIVATE: "Private half of test"}
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


def public_half(secret: str, query_ids: Iterable[int]) -> frozenset[int]:
    """The first half, rounded up, of queries in the order of the HMAC-SHA256 of their ids under a
    secret in hexadecimal digits."""
    key = bytes.fromhex(secret)
    order = sorted(query_ids, key=lambda query_id: hmac.digest(key, b"%d" % query_id, "sha256"))
    return frozenset(order[: (len(order) + 1) // 2])


def rounded(scores: npt.ArrayLike) -> Floats:
    """Scores from 0 to 1, rounded to 0.1 points."""
    exact: Floats = np.asarray(scores, dtype=np.float64)
    return exact.round(DECIMALS)


def rounded_means(means: Mapping[str, float]) -> dict[str, float]:
    """Those of means by measure that are shown, rounded."""
    return {key: float(rounded(means[key])) for key in MEASURES}


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
        measure = parse_measure(key)
        margin = mean_margin(scores.shape[1], measure)
        # Equal means before rounding, which may lie between two that differ in the last bit.
        means[key] = rounded(settled(scores.mean(axis=1), margin))
        intervals[key] = rounded(significance.bootstrap_intervals(scores))
        complete = np.flatnonzero(~np.isnan(scores).any(axis=1))
        groups_found = significance.groups(scores[complete], error=score_error(measure))
        letters = significance.letters(groups_found, len(complete))
        groups[key] = dict(zip(complete.tolist(), letters, strict=True))
    return Summary(means, intervals, groups)
