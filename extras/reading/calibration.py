"""How far a reader is to be believed: isotonic regression over judged images.

Judged images are not a random sample of the others: people see the likeliest first. So a calibrated
probability is one for images such as those that people judge, and nothing is certified by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import Conflict

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Judged images of either kind below which nothing is claimed.
LEAST: Final = 50
FOLDS: Final = 5


class TooFew(Conflict):
    """Fewer than LEAST judged images of a kind; the text says so, for people."""


@dataclass(frozen=True, eq=False, slots=True)
class Curve:
    """From a reader's probabilities to shares of relevant images."""

    said: Floats
    """(k,) ascending, 0..1."""
    found: Floats
    """(k,) not falling, above 0 and below 1."""

    def __call__(self, probabilities: ArrayLike) -> Floats:
        """The calibrated probabilities (n,) of a reader's (n,), straight between the points."""
        return np.interp(np.asarray(probabilities, np.float64), self.said, self.found)

    def log_odds(self, probabilities: ArrayLike) -> Floats:
        """The logarithms of the odds (n,), finite."""
        calibrated = self(probabilities)
        return np.log(calibrated / (1 - calibrated))


def fit(probabilities: Floats, relevant: Flags) -> Curve:
    """The curve of judged images (n,): isotonic regression, each of its steps a point at the mean
    of what was said there, its share with one image of either kind more (Laplace), so that no
    probability is 0 or 1.

    ValueError: no images.
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(probabilities, kind="stable")
    said, hits = probabilities[order], relevant[order].astype(np.float64)
    # What is said alike is one point.
    values, first, counts = np.unique(said, return_index=True, return_counts=True)
    blocks = isotonic_regression(np.add.reduceat(hits, first) / counts, weights=counts).blocks
    starts = blocks[:-1]
    sizes = np.add.reduceat(counts, starts)
    found = (np.add.reduceat(np.add.reduceat(hits, first), starts) + 1) / (sizes + 2)
    means = np.add.reduceat(values * counts, starts) / sizes
    # The added images may turn neighboring small steps around.
    return Curve(means, np.maximum.accumulate(found))


def cross_fitted(probabilities: Floats, relevant: Flags, groups: NDArray[np.int64]) -> Floats:
    """The calibrated probability (n,) of each judged image by a curve of other groups' images:
    `groups` (n,) are the queries, in FOLDS parts; with a single group, parts of its images.
    """
    names, group = np.unique(groups, return_inverse=True)
    part = group % FOLDS if len(names) > 1 else np.arange(len(groups)) % FOLDS
    calibrated = np.empty(len(probabilities))
    for fold in np.unique(part):
        others = part != fold
        curve = fit(probabilities[others], relevant[others])
        calibrated[~others] = curve(probabilities[~others])
    return calibrated


def require_enough(relevant: Flags) -> None:
    """Raise TooFew where a kind has fewer than LEAST judged images."""
    positive = int(np.count_nonzero(relevant))
    if min(positive, len(relevant) - positive) < LEAST:
        raise TooFew(
            f"The reader has read {positive} relevant and {len(relevant) - positive} not relevant "
            f"judged images; below {LEAST} of either nothing is said of it."
        )
