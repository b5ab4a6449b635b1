"""Two-stage rankings: a first stage's order, re-ranked by the scores of a second stage.

Source: Vendrow et al. 2024, section 4 and table 3.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.scoring.run_files import Ranking

#: The least difference between the scores of neighboring images. Large enough for programs that
#: read scores in single precision.
STEP: Final = 1e-6
#: The score of the first image that the second stage didn't score: below every cosine.
BEHIND: Final = -2.0


def reranked(
    image_ids: npt.NDArray[np.int64], scores: npt.NDArray[np.float64], *, depth: int
) -> Ranking:
    """Re-rank the first `depth` of a first stage's images (n,), best first.

    `scores` (min(depth, n),) are the second stage's, from -1 to 1 and higher for better; NaN where
    it has none. Scored images come first, by score, ties in the first stage's order; then the
    images that were not scored, then those behind `depth`, both in the first stage's order.

    The ranking's scores fix the ranks in every program, since they descend strictly: an image
    keeps the second stage's score, lowered where needed to lie `STEP` below the image before it (so
    by at most a millionth for each image before it); images that were not scored get -2, -3, -4 …
    ValueError: scores of another length or outside [-1, 1], a depth over 100,000.
    """
    head = image_ids[:depth]
    if len(scores) != len(head):
        raise ValueError(f"{len(scores)} scores for {len(head)} images")
    if len(head) > 100_000:
        raise ValueError("The lowered scores would reach those of the images behind.")
    scored = ~np.isnan(scores)
    # Cosines of half-precision vectors may be a little over 1.
    if (np.abs(scores[scored]) > 1.01).any():
        raise ValueError("A score lies outside [-1, 1].")
    order = np.flatnonzero(scored)[np.argsort(-scores[scored], kind="stable")]
    behind = np.concatenate([head[~scored], image_ids[depth:]])
    return Ranking(
        image_ids=np.concatenate([head[order], behind]).astype(np.int64),
        scores=np.concatenate([_descending(scores[order]), BEHIND - np.arange(len(behind))]),
    )


def _descending(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The highest scores that don't exceed these descending ones and are `STEP` apart at least."""
    steps = STEP * np.arange(len(scores))
    raised = scores + steps
    allowed = np.minimum.accumulate(raised)
    return np.where(raised == allowed, scores, allowed - steps)
