"""Images of a run with equal scores: what their order can change, and other ways to order them.

Everywhere else the smaller image id comes first (`evaluation`). trec_eval rounds scores to single
precision and puts the larger id first, comparing ids as texts. scikit-learn's `ndcg_score` takes
the mean over all orders of equal scores; so does `averaged_scores` for each measure with a closed
form (`tied_groups`). (`average_precision_score` of scikit-learn is another measure: it cuts at
scores, not at ranks.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluation.scoring.evaluation import Run, score_run, scored_query_ids
from evaluation.scoring.measures import Measure
from evaluation.scoring.metrics import Floats
from evaluation.scoring.rounding import score_margin
from evaluation.scoring.run_files import Ranking
from evaluation.scoring.tied_groups import TiedGroups
from releases.snapshot.qrels import Qrels


@dataclass(frozen=True, slots=True)
class TieRange:
    """How far the scores of a run can move with the order of images that have equal scores."""

    query_ids: list[int]
    """The queries with a score that can move; ascending."""
    means: dict[str, tuple[float, float]]
    """The least and the largest mean of each measure that can move, by key."""


def tie_range(run: Run, qrels: Qrels, measures: Sequence[Measure]) -> TieRange:
    """How far the order of images with equal scores can move the measures, without those of how
    much was judged.

    The order matters to a query where relevant and other images have the same score, and lie on
    both sides of a cut-off or count by their rank.
    """
    moving = [measure for measure in measures if measure.kind.more_is_better]
    least, most = (
        score_run(_ties_by_gain(run, qrels, relevant_first), qrels, moving)
        for relevant_first in (False, True)
    )
    margins = {measure.key: score_margin(measure) for measure in moving}
    movable = {key: most[key] - least[key] > margins[key] for key in most}
    queries = scored_query_ids(qrels)
    anywhere = np.any(list(movable.values()), axis=0) if movable else np.zeros(len(queries), bool)
    means = {
        key: (float(least[key].mean()), float(most[key].mean()))
        for key, moves in movable.items()
        if moves.any()
    }
    return TieRange(queries[anywhere].tolist(), means)


def as_trec_eval(run: Run, name_of: Callable[[int], str] = str) -> dict[int, Ranking]:
    """The run in trec_eval's order; `name_of` gives the text of an image's id."""
    ordered = {}
    for query_id, ranking in run.items():
        names = np.array([name_of(image_id) for image_id in ranking.image_ids.tolist()], dtype=str)
        by_name = np.empty(len(names), dtype=np.int64)
        by_name[np.argsort(names)] = np.arange(len(names))
        order = np.lexsort((-by_name, -ranking.scores.astype(np.float32)))
        ordered[query_id] = _in_order(ranking.image_ids[order])
    return ordered


def averaged_scores(run: Run, qrels: Qrels, measures: Sequence[Measure]) -> dict[str, Floats]:
    """As `score_run`, but the mean over all orders of images with equal scores.

    ValueError: a measure without a closed form (ERR, bpref).
    """
    tied_means = {}
    for measure in measures:
        if measure.kind.tied_mean is None:
            raise ValueError(f"The mean of {measure.key} over all orders has no closed form here.")
        tied_means[measure] = measure.kind.tied_mean
    scored = scored_query_ids(qrels).tolist()
    values = {measure.key: np.zeros(len(scored)) for measure in measures}
    for row, query_id in enumerate(scored):
        _, relevant = qrels.of(query_id)
        tied = TiedGroups.of(run.get(query_id), qrels, query_id)
        for measure, mean in tied_means.items():
            cut = measure.k or len(tied.hits)
            values[measure.key][row] = mean(tied, cut, int(relevant.sum()))
    return values


def _ties_by_gain(run: Run, qrels: Qrels, relevant_first: bool) -> dict[int, Ranking]:
    """The run with images of equal scores by falling gain, or by rising gain."""
    ordered = {}
    for query_id in set(run) & set(scored_query_ids(qrels).tolist()):
        ranking = run[query_id]
        gains = qrels.gains_at(query_id, ranking.image_ids)
        order = np.lexsort((-gains if relevant_first else gains, -ranking.scores))
        ordered[query_id] = _in_order(ranking.image_ids[order])
    return ordered


def _in_order(image_ids: npt.NDArray[np.int64]) -> Ranking:
    """A ranking of images in exactly this order."""
    return Ranking(image_ids, np.arange(len(image_ids), 0, -1, dtype=np.float64))
