"""Figures of the species task: intervals, McNemar's test, averages (CrypticBio, section 4), and
accuracy by taxon and by training images (iNat2017, section 4.1).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Truth = NDArray[np.bool_]
Floats = NDArray[np.float64]
QUARTILES: Final = ("lowest", "first_quartile", "median", "third_quartile", "highest")
#: Least numbers of training images of a bin, as in iNat2017's figure 5.
BINS: Final = (0, *(step * 10**power for power in range(7) for step in (1, 2, 5)))


def grouped(names: Sequence[str], counts: Ids, training: Floats) -> list[dict[str, Any]]:
    """`figures` of species (s,) by `names`, in the order of these."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    return [figures(name, counts[at], training[at]) for name, at in places.items()]


def figures(name: str, counts: Ids, training: Floats) -> dict[str, Any]:
    """What the page and files say of the species of a taxon, or of a bin: `counts` (s, 3) are their
    images, those named rightly, and those by one of the five nearest; `training` (s,) is NaN where
    unknown. Means and quartiles count each species alike, as iNat2017's table 4 and figure 5.
    """
    images, *right = counts.sum(axis=0).tolist()
    shares = counts[:, 1:] / counts[:, :1]
    row = {"name": name, "species": len(counts), "images": images, "training_images": None}
    if len(known := training[np.isfinite(training)]):
        row["training_images"] = float(known.mean())
    for top, correct, mean in zip(("", "_5"), right, shares.mean(axis=0).tolist(), strict=True):
        row[f"correct{top}"], row[f"accuracy{top}"] = correct, correct / images
        row[f"half_interval{top}"] = half_interval(correct, images)
        row[f"species_mean{top}"] = mean
    quartiles = np.quantile(shares[:, 0], (0, 0.25, 0.5, 0.75, 1)).tolist()
    row |= zip(QUARTILES, quartiles, strict=True)
    return {key: round(n, 6) if isinstance(n, float) else n for key, n in row.items()}


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
