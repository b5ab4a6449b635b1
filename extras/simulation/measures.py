"""How early an order brings up the relevant images, and intervals of shares.

WSS, ERF and ATD are those of ASReview Insights (github.com/asreview/asreview-insights, `metrics.py`
and `algorithms.py`), whose quantities are counted in images: records there are images here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]
"""(R,) how many labels it takes to each relevant image, ascending; the first image takes 1."""

#: Points of a recall curve, beside its beginning, at most.
CURVE_POINTS: Final = 200


def labels_to(found_at: Places, recall: float) -> int:
    """How many labels it takes until at least this share (0..1) of the relevant images is found."""
    return int(found_at[max(math.ceil(recall * len(found_at) - 1e-9), 1) - 1])


def work_saved(found_at: Places, images: int, recall: float = 0.95) -> float:
    """WSS@95 by default: how much earlier than in a random order the recall is reached, as a share
    of the pool. As in ASReview Insights it is the largest whole number of relevant images that is
    no more than the recall, and the last of them where there is none.
    """
    count = math.floor(recall * len(found_at) + 1e-9) or len(found_at)
    at_random = np.searchsorted(_found_at_random(len(found_at), images), count) + 1
    return float(at_random - found_at[count - 1]) / images


def extra_found(found_at: Places, images: int, share: float = 0.1) -> float:
    """ERF@10 by default: the recall after this share of the pool, less that of a random order."""
    labels = math.floor(share * images + 1e-9) or images
    relevant = np.searchsorted(found_at, labels, side="right")
    return float(relevant - _found_at_random(len(found_at), images)[labels - 1]) / len(found_at)


def time_to_discovery(found_at: Places) -> float:
    """ATD: how many labels it takes to a relevant image, on average."""
    return float(found_at.mean())


def _found_at_random(relevant: int, images: int) -> NDArray[np.float64]:
    """(n,) how many relevant images a random order has found after each label, evenly spread and
    rounded as in ASReview Insights.
    """
    return np.round(np.linspace(0, relevant, images))


def curve_labels(images: int) -> NDArray[np.int64]:
    """(p,) the numbers of labels at which recall curves are drawn, from 0 to the whole pool: denser
    at the beginning, even on an axis of their roots.
    """
    points = images * np.linspace(0, 1, CURVE_POINTS + 1) ** 2
    return np.unique(np.round(points)).astype(np.int64)


def recall_curve(found_at: Places, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """(p,) the share of the relevant images that is found after so many labels (p,)."""
    return np.searchsorted(found_at, labels, side="right") / len(found_at)


def ideal_curve(relevant: int, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """(p,) the recall of an order with all relevant images first after so many labels (p,)."""
    return np.minimum(labels / relevant, 1.0)


def binomial_interval(hits: int, runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact (Clopper and Pearson 1934) interval of a share of which `hits` of `runs` were seen.

    ValueError: no runs, or more hits than runs.
    """
    from scipy.special import betaincinv

    if not 0 <= hits <= runs or not runs:
        raise ValueError(f"{hits} of {runs} is no share")
    tail = (1 - confidence) / 2
    low = float(betaincinv(hits, runs - hits + 1, tail)) if hits else 0.0
    high = float(betaincinv(hits + 1, runs - hits, 1 - tail)) if hits < runs else 1.0
    return low, high


def fifth_percentile(values: Sequence[float]) -> float:
    """The value that a twentieth of them, at most, is below."""
    return float(np.percentile(values, 5, method="inverted_cdf"))
