"""Figures of the species task: intervals, McNemar's test, averages (CrypticBio, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Truth = NDArray[np.bool_]


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


def best_named(
    images: NDArray[np.float32], texts: NDArray[np.float32], allowed: NDArray[np.bool_] | None
) -> Ids:
    """For each image (n, d) the text (m, d) of the highest inner product, the first of equals;
    where `allowed` (n, m) is given, of those allowed.
    """
    products = images @ texts.T
    if allowed is not None:
        products[~allowed] = -np.inf
    best: Ids = products.argmax(axis=1)
    return best
