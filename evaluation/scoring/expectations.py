"""The exact expectation of each measure for a uniformly random order.

R of N images are relevant (and J are judged), and all orders of the N images are equally likely.
`totals` (...) holds R, from 1 to N; `sizes` holds N, one number or (...); `k` is one cut-off or
several. Each function returns the expectation of its namesake in `evaluation.scoring.metrics`,
float64 of shape (...), or (..., c) for several cut-offs. ValueError: k < 1, R < 1 or R > N.

Sums over ranks are in closed form or end at the cut-off, so corpora of millions cost no more than
small ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.scoring.metrics import (
    PERSISTENCE,
    Cutoffs,
    Floats,
    Integers,
    checked_totals,
    cutoffs,
    discounts,
    graded_ideal_gain,
    ideal_gain,
    per_cut,
)

#: Ranks that are summed at a time.
_BLOCK: Final = 1 << 16


def random_precision_at_k(totals: npt.ArrayLike, sizes: npt.ArrayLike, k: Cutoffs) -> Floats:
    """Each of the first min(k, N) images is relevant with probability R / N."""
    cuts = cutoffs(k)
    return _hits(*_checked(totals, sizes), cuts) / cuts


def random_recall_at_k(totals: npt.ArrayLike, sizes: npt.ArrayLike, k: Cutoffs) -> Floats:
    """min(k, N) / N."""
    cuts = cutoffs(k)
    relevant, images = _checked(totals, sizes)
    return _hits(relevant, images, cuts) / per_cut(relevant, cuts)


def random_capped_recall_at_k(totals: npt.ArrayLike, sizes: npt.ArrayLike, k: Cutoffs) -> Floats:
    """min(k, N) x R / N, over min(k, R)."""
    cuts = cutoffs(k)
    relevant, images = _checked(totals, sizes)
    return _hits(relevant, images, cuts) / np.minimum(per_cut(relevant, cuts), cuts)


def random_average_precision_at_k(
    totals: npt.ArrayLike, sizes: npt.ArrayLike, k: Cutoffs
) -> Floats:
    """The image at rank i is relevant with probability R/N, and then each of the i - 1 before it
    with probability a = (R-1)/(N-1), so the expectation of precision@i x rel(i) is
    R/N x (1 + (i-1) a) / i. The sum over i <= m = min(k, N) is R/N x (a m + (1-a) H(m)), with the
    harmonic number H; it is divided by min(k, R)."""
    cuts = cutoffs(k)
    relevant, images = _checked(totals, sizes)
    return _precision_sums_at(relevant, images, cuts) / np.minimum(per_cut(relevant, cuts), cuts)


def random_uncapped_average_precision_at_k(
    totals: npt.ArrayLike, sizes: npt.ArrayLike, k: Cutoffs
) -> Floats:
    """As `random_average_precision_at_k`, over R."""
    cuts = cutoffs(k)
    relevant, images = _checked(totals, sizes)
    return _precision_sums_at(relevant, images, cuts) / per_cut(relevant, cuts)


def random_average_precision(totals: npt.ArrayLike, sizes: npt.ArrayLike) -> Floats:
    """As AP@k with k = N."""
    relevant, images = _checked(totals, sizes)
    return _precision_sums(relevant, images, images) / relevant


def random_ndcg_at_k(totals: npt.ArrayLike, sizes: npt.ArrayLike, k: Cutoffs) -> Floats:
    """R/N times the discounts of the first min(k, N) ranks, over those of an ideal order."""
    cuts = cutoffs(k)
    relevant, images = _checked(totals, sizes)
    depths = np.minimum(per_cut(images, cuts), cuts)
    gains = np.cumsum(discounts(np.arange(1, depths.max(initial=0) + 1)))
    expected: Floats = per_cut(relevant / images, cuts) * gains[depths - 1]
    return expected / ideal_gain(relevant, cuts)


def random_graded_ndcg_at_k(
    all_gains: Sequence[Integers], sizes: npt.ArrayLike, k: Cutoffs
) -> Floats:
    """The mean gain of all N images times the discounts of the first min(k, N) ranks, over those of
    an ideal order: (s,) or (s, c). `all_gains` are of every judged image of each of s queries."""
    cuts = cutoffs(k)
    images = np.broadcast_to(np.asarray(sizes, dtype=np.int64), (len(all_gains),))
    mean = np.array([gains.sum() for gains in all_gains]) / images
    depths = np.minimum(per_cut(images, cuts), cuts)
    weights = np.cumsum(discounts(np.arange(1, depths.max(initial=0) + 1)))
    expected: Floats = (
        per_cut(mean, cuts) * weights[depths - 1] / graded_ideal_gain(all_gains, cuts)
    )
    return expected


def random_reciprocal_rank_at_k(totals: npt.ArrayLike, sizes: npt.ArrayLike, k: Cutoffs) -> Floats:
    """The sum over i <= k of 1/i times the probability p(i) that the first hit is at rank i.

    p(i) = C(N-i, R-1) / C(N, R), the negative hypergeometric distribution, is computed from
    p(1) = R/N by p(i+1) = p(i) x (N-R-i+1) / (N-i): these products of ratios near 1 are exact
    enough, whereas binomials would overflow and their logarithms cancel. The sum ends early when
    the remaining terms can't change it.
    """
    cuts = cutoffs(k)
    relevant, images = _checked(totals, sizes)
    pairs, pair_indexes = np.unique(
        np.stack([relevant.reshape(-1), images.reshape(-1)]), axis=1, return_inverse=True
    )
    values = [_reciprocal_rank(int(r), int(n), cuts.reshape(-1)) for r, n in pairs.T]
    table = np.array(values, dtype=np.float64).reshape(len(values), cuts.size)
    return table[pair_indexes.reshape(-1)].reshape(relevant.shape + cuts.shape)


def random_success_at_k(totals: npt.ArrayLike, sizes: npt.ArrayLike, k: Cutoffs) -> Floats:
    """1 - C(N-R, k) / C(N, k), as a product of min(k, R) factors near 1."""
    cuts = cutoffs(k)
    relevant, images = _checked(totals, sizes)
    probabilities = np.zeros(relevant.shape + cuts.shape)
    for index in np.ndindex(probabilities.shape):
        row = index[: relevant.ndim]
        total, size = int(relevant[row]), int(images[row])
        cut = int(cuts[index[relevant.ndim :]])
        fewer, more = min(cut, total), max(cut, total)
        if fewer + more > size:
            probabilities[index] = 1.0
        else:
            probabilities[index] = -np.expm1(np.log1p(-more / (size - np.arange(fewer))).sum())
    return probabilities


def random_rank_biased_precision(totals: npt.ArrayLike, sizes: npt.ArrayLike) -> Floats:
    """R / N of the weights of all N ranks, 1 - p^N."""
    relevant, images = _checked(totals, sizes)
    expected: Floats = relevant / images * (1 - PERSISTENCE**images)
    return expected


def random_rank_biased_residual(judged: npt.ArrayLike, sizes: npt.ArrayLike) -> Floats:
    """1 less J / N of the weights of the first N ranks; `judged` (...) is J, from 0."""
    counts, images = _checked_judged(judged, sizes)
    expected: Floats = 1 - counts / np.maximum(images, 1) * (1 - PERSISTENCE**images)
    return expected


def random_bpref(totals: npt.ArrayLike, judged: npt.ArrayLike) -> Floats:
    """Every number of negatives from 0 to J - R is equally likely before a relevant image, whatever
    the size of the corpus."""
    relevant, counts = _checked(totals, judged)
    negatives = counts - relevant
    most = np.minimum(negatives, relevant)
    before = (most * (most - 1) / 2 + most * (negatives - most + 1)) / (negatives + 1)
    expected: Floats = 1 - before / np.maximum(most, 1)
    return expected


def random_r_precision(totals: npt.ArrayLike, sizes: npt.ArrayLike) -> Floats:
    """R / N."""
    relevant, images = _checked(totals, sizes)
    share: Floats = relevant / images
    return share


def random_average_precision_at_r(totals: npt.ArrayLike, sizes: npt.ArrayLike) -> Floats:
    """As AP@k with k = R."""
    relevant, images = _checked(totals, sizes)
    return _precision_sums(relevant, images, relevant) / relevant


def random_judged_at_k(judged: npt.ArrayLike, sizes: npt.ArrayLike, k: Cutoffs) -> Floats:
    """Each of the first min(k, N) images is judged with probability J / N; `judged` (...) is J,
    from 0."""
    cuts = cutoffs(k)
    return _hits(*_checked_judged(judged, sizes), cuts) / cuts


def _checked(totals: npt.ArrayLike, sizes: npt.ArrayLike) -> tuple[Integers, Integers]:
    relevant, images = np.broadcast_arrays(
        checked_totals(totals), np.asarray(sizes, dtype=np.int64)
    )
    excess = relevant > images
    if excess.any():
        raise ValueError(
            f"{relevant[excess][0]} relevant images in a corpus of {images[excess][0]}"
        )
    return relevant, images


def _checked_judged(judged: npt.ArrayLike, sizes: npt.ArrayLike) -> tuple[Integers, Integers]:
    counts, images = np.broadcast_arrays(
        np.asarray(judged, dtype=np.int64), np.asarray(sizes, dtype=np.int64)
    )
    if (counts < 0).any() or (counts > images).any():
        raise ValueError("there are more judged images than images")
    return counts, images


def _hits(counts: Integers, images: Integers, cuts: Integers) -> Floats:
    """How many of `counts` images are expected among the first k of N."""
    depths = np.minimum(per_cut(images, cuts), cuts)
    expected: Floats = depths * per_cut(counts, cuts) / np.maximum(per_cut(images, cuts), 1)
    return expected


def _precision_sums_at(relevant: Integers, images: Integers, cuts: Integers) -> Floats:
    depths = np.minimum(per_cut(images, cuts), cuts)
    return _precision_sums(per_cut(relevant, cuts), per_cut(images, cuts), depths)


def _precision_sums(relevant: Integers, images: Integers, depths: Integers) -> Floats:
    # Imported here since it is slow.
    from scipy.special import digamma

    also_before = (relevant - 1) / np.maximum(images - 1, 1)
    harmonic = digamma(depths + 1.0) + np.euler_gamma
    sums: Floats = relevant / images * (also_before * depths + (1 - also_before) * harmonic)
    return sums


def _reciprocal_rank(relevant: int, images: int, cuts: Integers) -> Floats:
    """The expectation at each cut-off (c,)."""
    last = min(int(cuts.max(initial=0)), images - relevant + 1)
    values = np.zeros(len(cuts))
    total, probability = 0.0, relevant / images
    for start in range(1, last + 1, _BLOCK):
        ranks = np.arange(start, min(start + _BLOCK, last + 1), dtype=np.float64)
        ratios = (images - relevant - ranks + 1) / np.maximum(images - ranks, 1)
        # p(start), then each next one; the product over the whole block begins the next.
        products = probability * np.cumprod(np.concatenate(([1.0], ratios)))
        sums = total + np.cumsum(products[:-1] / ranks)
        reached = cuts >= start
        values[reached] = sums[np.minimum(cuts[reached] - start, len(ranks) - 1)]
        total, probability = float(sums[-1]), float(products[-1])
        # The probability that no hit is among the first i ranks is p(i+1) x (N-i) / R.
        remaining = probability * (images - ranks[-1]) / relevant
        if remaining < np.finfo(np.float64).eps * total * 1e-3:
            break
    return values
