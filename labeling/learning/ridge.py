"""The order that learns: ridge regression around the text's vector, on the stored embeddings.

With x̃ = (x - μ) / s, where μ is the pool's mean and s² the mean of |x - μ|², y = ±1, weights a,
means x̄ and ȳ by these weights, and w₀ = 0.25 t / σ(x̃·t) for the text's vector t,

    w = argmin Σ aᵢ (yᵢ - ȳ - (x̃ᵢ - x̄)·w)² + λ |w - w₀|²
      = w₀ + Sᵀ (S Sᵀ + λ I)⁻¹ √a (y - ȳ - (x̃ - x̄)·w₀),   S = √a (x̃ - x̄)

Where images have log-odds to be relevant (`features`), x̃ has them as one more component φ, less
their mean over the pool and in units of ODDS_UNIT, w₀ has ODDS_PRIOR there, and an image's score is
x·w + φ·v.

The minimum is unique and depends on nothing else, so the order is a function of the set of
judgments. A revision stores its direction, w of unit length in half precision; its order is by the
exact inner product with it (see `retrieval.ranking.scan`), ties by image id, the same on any
machine. Directions computed by another solver, or from the judgments in another order, agree within
REFIT_ULPS.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.cores import cores
from retrieval.encoding.unit_rows import half_rounded
from retrieval.ranking.scan import EXACT_ROWS, Halves, Rows, Scores, exact_scores

#: λ: the weight of the text's direction against the judgments.
RIDGE: Final = 10.0
#: The standard deviation over the pool of the text's prediction w₀·x̃.
PRIOR_SPREAD: Final = 0.25
#: Log-odds that make φ 1. They aren't brought to variance 1: a reader that tells more counts more.
#: ODDS_PRIOR is w₀'s part of φ. extras/simulation/README.md has what the order saves by them.
ODDS_UNIT: Final = 2.0
ODDS_PRIOR: Final = 0.125
#: The largest weight of φ. With WIDEST it keeps a score below 32, so that all sums fit a double;
#: half-precision numbers multiply exactly.
HEAVIEST: Final = 2.0
WIDEST: Final = 8.0
#: One of every FROZEN_EVERY images comes from the frozen order.
FROZEN_EVERY: Final = 4
#: By how many units in the last place a number of a direction may differ from that of a refit.
#: Solvers differ by some 1e-13, so rounding to halves differs only for numbers that lie that close
#: to the middle between two halves.
REFIT_ULPS: Final = 1


@dataclass(frozen=True, eq=False, slots=True)
class PoolMoments:
    """What the regression needs to know of a pool, for one text."""

    mean: NDArray[np.float64]
    """(d,) μ."""
    scale: float
    """s; 0 where all vectors are the same."""
    text_spread: float
    """σ(x̃·t); 0 where the text scores all images alike."""


def pool_moments(blocks: Iterable[Halves], text: Halves) -> PoolMoments:
    """The moments of a pool's vectors, given in blocks of (n, d), for a text's vector (d,).

    They are computed once for a pool: no judgment changes them. Takes memory for one block, which
    may be mapped from a file, and for one score per image. ValueError: the pool is empty.
    """
    count, squares = 0, 0.0
    total = np.zeros(len(text))
    scores = [np.empty(0)]
    for vectors in blocks:
        count += len(vectors)
        scores.append(pool_scores(vectors, text))
        for start in range(0, len(vectors), EXACT_ROWS):
            block = vectors[start : start + EXACT_ROWS].astype(np.float64)
            total += block.sum(axis=0)
            squares += float(np.einsum("ij,ij->", block, block))
    if not count:
        raise ValueError("a pool without images has no moments")
    mean = total / count
    scale = float(np.sqrt(max(squares / count - float(mean @ mean), 0.0)))
    # Rounding leaves a small scale even where all vectors are the same.
    if scale < 1e-6:
        return PoolMoments(mean, 0.0, 0.0)
    return PoolMoments(mean, scale, float(np.std(np.concatenate(scores))) / scale)


def direction_and_weight(
    moments: PoolMoments,
    text: Halves,
    judged: Halves,
    relevant: NDArray[np.bool_],
    numbers: NDArray[np.floating],
) -> tuple[Halves, float]:
    """The direction (d,) learned from judgments, of unit length, and the weight of the images'
    further number, a half, 0 without one: w and v of the module's equation.

    `text` (d,) is the text's vector, `judged` (m, d) are the judged images' vectors, `relevant`
    (m,) their labels, unsure counting as not relevant, and `numbers` (m, 1) their further numbers,
    see `odds_numbers`, or (m, 0). The direction is the text's vector until both a relevant and an
    irrelevant image are judged, and where the text scores all images of the pool alike. Time
    O(m d min(m, d)).
    """
    if not moments.text_spread:
        return text, 0.0
    further = numbers.shape[1]
    positive = int(np.count_nonzero(relevant))
    negative = len(relevant) - positive
    if not positive or not negative:
        # k·s·ODDS_PRIOR for k = σ(x̃·t) / PRIOR_SPREAD, which makes w₀ the text's vector.
        prior_weight = moments.scale * moments.text_spread * ODDS_PRIOR / PRIOR_SPREAD
        return text, _half(further * prior_weight)
    roots = np.where(relevant, (negative / positive) ** 0.25, 1.0)
    weights = roots**2
    images = (judged.astype(np.float64) - moments.mean) / moments.scale
    images = np.hstack([images, numbers])
    images -= np.average(images, axis=0, weights=weights)
    labels = np.where(relevant, 1.0, -1.0)
    labels -= np.average(labels, weights=weights)
    prior = text.astype(np.float64) * (PRIOR_SPREAD / moments.text_spread)
    prior = np.append(prior, [ODDS_PRIOR] * further)
    rows = roots[:, None] * images
    residuals = roots * (labels - images @ prior)
    # Both forms are equal, so solve the smaller system: (SᵀS + λI)⁻¹ Sᵀ = Sᵀ (SSᵀ + λI)⁻¹.
    if len(rows) <= rows.shape[1]:
        learned = rows.T @ np.linalg.solve(_add_ridge(rows @ rows.T), residuals)
    else:
        learned = np.linalg.solve(_add_ridge(rows.T @ rows), rows.T @ residuals)
    w, v = np.split(prior + learned, [len(text)])
    weight = moments.scale * float(v.sum()) / float(np.linalg.norm(w))
    return np.array(half_rounded(w), np.float16), _half(weight)


def odds_numbers(log_odds: NDArray[np.floating]) -> Halves:
    """A pool's log-odds (n,), NaN where an image has none, as the order takes them: halves of mean
    0 in units of ODDS_UNIT, at most WIDEST; 0 where there are none.
    """
    known = np.isfinite(log_odds)
    mean = np.mean(log_odds[known]) if known.any() else 0.0
    numbers = np.where(known, (log_odds - mean) / ODDS_UNIT, 0.0)
    return numbers.clip(-WIDEST, WIDEST).astype(np.float16)


def _half(number: float) -> float:
    return float(np.float16(np.clip(number, -HEAVIEST, HEAVIEST)))


def _add_ridge(products: NDArray[np.float64]) -> NDArray[np.float64]:
    np.einsum("ii->i", products)[:] += RIDGE
    return products


def agree(first: Halves, second: Halves) -> bool:
    """Whether two directions (d,) differ by no more than refits of the same judgments do."""
    difference = np.abs(first.astype(np.float64) - second.astype(np.float64))
    unit = np.maximum(np.spacing(np.abs(first)), np.spacing(np.abs(second))).astype(np.float64)
    return bool((difference <= REFIT_ULPS * unit).all())


def pool_scores(vectors: Halves, query: Halves) -> Scores:
    """The exact inner products (n,) of a pool's vectors (n, d), which may be mapped from a file,
    with a vector (d,)."""
    scores = np.empty(len(vectors))

    def fill(start: int) -> None:
        block = slice(start, start + EXACT_ROWS)
        scores[block] = exact_scores(vectors[block], query)

    with ThreadPoolExecutor(min(8, cores())) as pool:
        list(pool.map(fill, range(0, len(vectors), EXACT_ROWS)))
    return scores


def learned_indices(scores: Scores, image_ids: Rows) -> NDArray[np.intp]:
    """The indices (n,) that sort images (n,) by falling exact score (n,), ties by image id."""
    return np.lexsort((image_ids, -scores))


def interleave(
    learned: Iterable[int], frozen: Iterable[int], *, judged: Collection[int]
) -> Iterator[int]:
    """The queue of a revision: the unjudged images, each once, one in FROZEN_EVERY from the frozen
    order and the others from the learned order, each order's best first.

    Positions count the judged images too, so the proportion also holds over revisions of few images
    each. When one order is exhausted, the other continues. Lazy: it reads both orders only as far
    as needed.
    """
    used = set(judged)
    orders = {True: iter(frozen), False: iter(learned)}
    position = len(used)
    while True:
        position += 1
        turn = frozen_turn(position)
        for order in (orders[turn], orders[not turn]):
            image_id = next((image_id for image_id in order if image_id not in used), None)
            if image_id is not None:
                used.add(image_id)
                yield image_id
                break
        else:
            return


def frozen_turn(position: int) -> bool:
    """Whether the image at a position, counted from 1 with the judged images, comes from the frozen
    order."""
    return position % FROZEN_EVERY == 0
