"""Fusion of several rankings into one, by their ranks or by their scores.

Sources: Cormack, Clarke and Büttcher 2009, "Reciprocal Rank Fusion outperforms Condorcet and
individual Rank Learning Methods", for RRF; Fox and Shaw 1994, "Combination of Multiple Searches",
for CombSUM and CombMNZ; Montague and Aslam 2001, "Relevance Score Normalization for Metasearch",
for the normalizations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.scoring.evaluation import Run, sorted_ranking
from evaluation.scoring.run_files import Ranking

Floats = npt.NDArray[np.float64]

METHODS: Final[Mapping[str, str]] = {"rrf": "RRF", "combsum": "CombSUM", "combmnz": "CombMNZ"}
NORMALIZATIONS: Final[Mapping[str, str]] = {"min-max": "min-max", "z": "z-score"}
#: RRF's constant k, as its authors set it.
RRF_K: Final = 60


def fuse(runs: Sequence[Run], method: str, normalization: str = "min-max") -> dict[int, Ranking]:
    """The fused ranking of every query that a run holds, as deep as the deepest of its rankings.

    "rrf" sums 1 / (60 + rank); "combsum" sums normalized scores; "combmnz" multiplies that sum by
    the number of runs that have the image. A run that lacks an image adds 0. Ties are in the order
    of image ids. ValueError: an unknown method or normalization.
    """
    if method not in METHODS or normalization not in NORMALIZATIONS:
        raise ValueError(f"There is no fusion by {method!r} with {normalization!r}.")
    fused = {}
    for query_id in sorted(set().union(*runs)):
        rankings = [sorted_ranking(run[query_id]) for run in runs if query_id in run]
        ids, image_indexes = np.unique(
            np.concatenate([ranking.image_ids for ranking in rankings]), return_inverse=True
        )
        contributions = [
            1 / (RRF_K + np.arange(1.0, len(ranking.scores) + 1))
            if method == "rrf"
            else normalized(ranking.scores, normalization)
            for ranking in rankings
        ]
        scores: Floats = np.bincount(image_indexes, weights=np.concatenate(contributions)).astype(
            np.float64
        )
        if method == "combmnz":
            scores = scores * np.bincount(image_indexes)
        ranked = sorted_ranking(Ranking(image_ids=ids, scores=scores))
        depth = max(len(ranking.image_ids) for ranking in rankings)
        fused[query_id] = Ranking(image_ids=ranked.image_ids[:depth], scores=ranked.scores[:depth])
    return fused


def normalized(scores: Floats, normalization: str) -> Floats:
    """(n,) scores less the lowest of the ranking, divided by their range ("min-max") or by their
    standard deviation ("z": the z-score less that of the lowest). All 1 where all are equal.
    """
    above: Floats = scores - scores.min(initial=np.inf)
    spread = above.max(initial=0.0) if normalization == "min-max" else above.std()
    return above / spread if above.any() else np.ones_like(above)
