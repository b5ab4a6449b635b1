"""Figures of the species task: intervals, McNemar's test, averages (CrypticBio, section 4), and
accuracy by taxon and by training images (iNat2017, section 4.1).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Truth = NDArray[np.bool_]
#: Least numbers of training images of a bin, as in iNat2017's figure 5.
BINS: Final = (0, *(step * 10**power for power in range(7) for step in (1, 2, 5)))


@dataclass(frozen=True, slots=True)
class Group:
    """The species of a taxon, or those with about as many training images."""

    name: str
    counts: Ids
    """(s, 3): of each the images, those named rightly, and those so by one of the five nearest."""
    training_images: float | None
    """The mean of the species for which it is known."""

    @property
    def shares(self) -> NDArray[np.float64]:
        """(s, 2): top-1 and top-5 of each species."""
        return np.asarray(self.counts[:, 1:] / self.counts[:, :1])


def grouped(names: Sequence[str], counts: Ids, training: NDArray[np.float64]) -> list[Group]:
    """Groups of species (s,) by `names`, in the order of these; `training` is NaN where unknown."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    groups = []
    for name, members in places.items():
        at = np.array(members)
        known = training[at][np.isfinite(training[at])]
        groups.append(Group(name, counts[at], float(known.mean()) if len(known) else None))
    return groups


def bin_of(images: float) -> str:
    """The one of BINS that a number of training images is in, such as “20–49”."""
    after = bisect_right(BINS, images)
    low = BINS[after - 1]
    if after == len(BINS):
        return f"{low:,} or more"
    return f"{low:,}–{BINS[after] - 1:,}" if BINS[after] > low + 1 else f"{low:,}"


def half_interval(correct: int, images: int) -> float:
    """Half of the normal 95 % interval of a binomial proportion, as CrypticBio gives it after ±."""
    share = correct / images
    return 1.96 * sqrt(share * (1 - share) / images)


def average_over_sets(sets: Sequence[tuple[int, int, int]]) -> float:
    """The mean accuracy of sets (species, images, correct), weighted by their numbers of species,
    as CrypticBio weights by classes.
    """
    weight = sum(species for species, _, _ in sets)
    return sum(species * correct / images for species, images, correct in sets) / weight


def mcnemar(first: tuple[Ids, Truth], second: tuple[Ids, Truth]) -> float | None:
    """The exact two-sided p of McNemar's test on the images (n,) that both runs named, each with
    whether it was right (n,); ids ascend. None where no image tells the two apart.
    """
    from scipy.stats import binomtest

    _, at, beside = np.intersect1d(first[0], second[0], assume_unique=True, return_indices=True)
    right, other = first[1][at], second[1][beside]
    better, worse = int((right & ~other).sum()), int((other & ~right).sum())
    if better + worse == 0:
        return None
    result: Any = binomtest(better, better + worse, 0.5)
    return float(result.pvalue)


def true_rank(
    images: NDArray[np.float32],
    texts: NDArray[np.float32],
    truth: Ids,
    allowed: NDArray[np.bool_] | None,
) -> Ids:
    """For each image (n, d) how many of the texts (m, d) come before the true one, whose place is
    in `truth` (n,): those of a higher inner product, and earlier ones of an equal product; where
    `allowed` (n, m) is given, of those allowed.
    """
    products = images @ texts.T
    own = np.take_along_axis(products, truth[:, None], axis=1)
    before = products > own
    before |= (products == own) & (np.arange(len(texts)) < truth[:, None])
    if allowed is not None:
        before &= allowed
    return np.asarray(before.sum(axis=1), np.int64)
