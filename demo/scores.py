"""How well similarities order the demo corpus, beside chance and the exact answer."""

from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import numpy.typing as npt

from benchmark.scoring.expectations import random_average_precision_at_k
from benchmark.scoring.metrics import average_precision_at_k


@dataclass(frozen=True, slots=True)
class DemoScore:
    """AP@k of one query over one set of candidates, from 0 to 1."""

    positives: int
    candidates: int
    model: float
    random: float
    """The expectation over all orders, by formula."""
    exact: float
    """All relevant images first."""


def demo_score(
    similarities: npt.NDArray[np.floating],
    image_ids: npt.NDArray[np.int64],
    *,
    relevant: Collection[int],
    candidates: Collection[int] | None = None,
    k: int,
) -> DemoScore | None:
    """Score one query's similarities (n,) to the images (n,); None where no candidate is relevant.

    Higher is better, equal ones are ordered by image id. `candidates` leaves only those images, as
    a species filter does; None means all. ValueError: k < 1.
    """
    if candidates is not None:
        kept = np.isin(image_ids, np.fromiter(candidates, np.int64, len(candidates)))
        similarities, image_ids = similarities[kept], image_ids[kept]
    hits = np.isin(image_ids, np.fromiter(relevant, np.int64, len(relevant)))
    total = int(hits.sum())
    if total == 0:
        return None
    order = np.lexsort((image_ids, -similarities))
    return DemoScore(
        positives=total,
        candidates=len(image_ids),
        model=float(average_precision_at_k(hits[order], total, k)),
        random=float(random_average_precision_at_k(total, len(image_ids), k)),
        exact=float(average_precision_at_k(np.sort(hits)[::-1], total, k)),
    )


def mean_score(scores: Collection[DemoScore]) -> tuple[float, float, float]:
    """mAP@k of (the model, a random order, the exact answer). StatisticsError: no scores."""
    return (
        fmean(score.model for score in scores),
        fmean(score.random for score in scores),
        fmean(score.exact for score in scores),
    )
