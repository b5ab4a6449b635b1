"""The order that learns: ridge regression around the text's vector, on the stored embeddings.

With x̃ = (x - μ) / s, where μ is the pool's mean and s² the mean of |x - μ|², y = ±1, weights a,
means x̄ and ȳ by these weights, and w₀ = 0.25 t / σ(x̃·t) for the text's vector t,

    w = argmin Σ aᵢ (yᵢ - ȳ - (x̃ᵢ - x̄)·w)² + λ |w - w₀|²
      = w₀ + Sᵀ (S Sᵀ + λ I)⁻¹ √a (y - ȳ - (x̃ - x̄)·w₀),   S = √a (x̃ - x̄)

It has one minimum and no state: the order is a function of the set of judgments. A revision is its
direction, w of unit length in half precision; its order is by the exact inner product with it (see
`retrieval.ranking.scan`), ties by image id, the same on any machine. The direction itself, computed
again by another solver or from judgments in another order, agrees within REFIT_ULPS.
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
#: One image in so many comes from the frozen order.
FROZEN_EVERY: Final = 4
#: How far a number of a direction may be from that of a refit, in units of its last place. Solvers
#: differ by some 1e-13, so a number differs only where it lies that close to between two halves.
REFIT_ULPS: Final = 1


@dataclass(frozen=True, eq=False, slots=True)
class PoolMoments:
    """What the regression needs to know of a pool, for one text."""

    mean: NDArray[np.float64]
    """(d,) μ."""
    scale: float
    """s; 0 where all vectors are the same."""
    text_spread: float
    """σ(x̃·t); 0 where the text doesn't tell images from each other."""


def pool_moments(blocks: Iterable[Halves], text: Halves) -> PoolMoments:
    """The moments of a pool's vectors, in blocks of (n, d), for a text's (d,).

    Once a pool: no judgment changes them. Memory for a block, which may be mapped from a file, and
    for a score an image. ValueError: the pool is empty.
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
    # Rounding alone leaves a trace where the vectors are the same.
    if scale < 1e-6:
        return PoolMoments(mean, 0.0, 0.0)
    return PoolMoments(mean, scale, float(np.std(np.concatenate(scores))) / scale)


def direction(
    moments: PoolMoments, text: Halves, judged: Halves, relevant: NDArray[np.bool_]
) -> Halves:
    """The direction (d,) that judgments give, of unit length: w of the module's equation.

    `text` (d,) is the text's vector, `judged` (m, d) the judged images' and `relevant` (m,) what
    was said of them; unsure is not relevant. The text's own vector until there are a relevant and
    an irrelevant image, and where the pool's images don't differ. Time O(m d min(m, d)).
    """
    positive = int(np.count_nonzero(relevant))
    negative = len(relevant) - positive
    if not positive or not negative or not moments.text_spread:
        return text
    roots = np.where(relevant, (negative / positive) ** 0.25, 1.0)
    weights = roots**2
    images = (judged.astype(np.float64) - moments.mean) / moments.scale
    images -= np.average(images, axis=0, weights=weights)
    labels = np.where(relevant, 1.0, -1.0)
    labels -= np.average(labels, weights=weights)
    prior = text.astype(np.float64) * (PRIOR_SPREAD / moments.text_spread)
    rows = roots[:, None] * images
    left = roots * (labels - images @ prior)
    # The same by either side: (SᵀS + λI)⁻¹ Sᵀ = Sᵀ (SSᵀ + λI)⁻¹.
    if len(rows) <= rows.shape[1]:
        learned = rows.T @ np.linalg.solve(_ridged(rows @ rows.T), left)
    else:
        learned = np.linalg.solve(_ridged(rows.T @ rows), rows.T @ left)
    return np.array(half_rounded(prior + learned), np.float16)


def _ridged(products: NDArray[np.float64]) -> NDArray[np.float64]:
    np.einsum("ii->i", products)[:] += RIDGE
    return products


def agree(one: Halves, other: Halves) -> bool:
    """Whether two directions (d,) differ by no more than refits of the same judgments do."""
    apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
    unit = np.maximum(np.spacing(np.abs(one)), np.spacing(np.abs(other))).astype(np.float64)
    return bool((apart <= REFIT_ULPS * unit).all())


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


def learned_places(scores: Scores, image_ids: Rows) -> NDArray[np.intp]:
    """Where the images (n,) stand by falling exact score (n,), ties by image id: (n,) indices."""
    return np.lexsort((image_ids, -scores))


def learned_order(scores: Scores, image_ids: Rows) -> Rows:
    """The images (n,) in the order of learned_places."""
    ordered: Rows = image_ids[learned_places(scores, image_ids)]
    return ordered


def interleaved(
    learned: Iterable[int], frozen: Iterable[int], *, judged: Collection[int]
) -> Iterator[int]:
    """The queue of a revision: the unjudged images, each once, one in FROZEN_EVERY from the frozen
    order and the others from the learned one, each order's best first.

    Counting starts with the judged images, so that the share holds over revisions of few images
    too. Where one order has no more, the other fills its places. It reads both orders only as far
    as it is read itself.
    """
    used = set(judged)
    orders = {True: iter(frozen), False: iter(learned)}
    place = len(used)
    while True:
        place += 1
        turn = frozen_turn(place)
        for order in (orders[turn], orders[not turn]):
            image = next((one for one in order if one not in used), None)
            if image is not None:
                used.add(image)
                yield image
                break
        else:
            return


def frozen_turn(place: int) -> bool:
    """Whether the image at a place, counted from 1 with the judged ones, is the frozen order's."""
    return place % FROZEN_EVERY == 0
