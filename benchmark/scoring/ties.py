"""Images of a run with equal scores: what their order can change, and other ways to settle it.

Everywhere else the smaller image id goes first (`evaluation`). trec_eval rounds scores to single
precision and lets the larger id go first, as texts compare. scikit-learn's `ndcg_score` takes the
mean over all orders of equal scores; so does `averaged_scores` with each measure that has a closed
form. Source: McSherry and Najork 2008, "Computing information retrieval performance measures
efficiently in the presence of tied scores". (`average_precision_score` of scikit-learn is another
measure: it cuts at scores, not at ranks.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmark.scoring import metrics
from benchmark.scoring.evaluation import Run, score_run, scored_query_ids
from benchmark.scoring.measures import JUDGED_KINDS, Measure
from benchmark.scoring.metrics import Floats, Integers
from benchmark.scoring.qrels import Qrels
from benchmark.scoring.run_files import Ranking


@dataclass(frozen=True, slots=True)
class TieRange:
    """How far the scores of a run can move with the order of images that have equal scores."""

    query_ids: list[int]
    """The queries with a score that can move; ascending."""
    means: dict[str, tuple[float, float]]
    """The least and the largest mean of each measure that can move, by its key."""


def tie_range(run: Run, qrels: Qrels, measures: Sequence[Measure]) -> TieRange:
    """What the order of equal scores can change, of all measures but those of what was judged.

    A query is named where it matters to a measure: where images with equal scores, of which some
    are relevant and some are not, stand on both sides of a cut-off or count by their rank.
    """
    moving = [one for one in measures if one.kind not in JUDGED_KINDS or one.kind == "Bpref"]
    least, most = (
        score_run(_settled(run, qrels, relevant_first), qrels, moving)
        for relevant_first in (False, True)
    )
    apart = {key: most[key] - least[key] > 1e-12 for key in most}
    queries = scored_query_ids(qrels)
    anywhere = np.any(list(apart.values()), axis=0) if apart else np.zeros(len(queries), bool)
    means = {
        key: (float(least[key].mean()), float(most[key].mean()))
        for key, moves in apart.items()
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
    """As `evaluation.score_run`, in the mean over all orders of images with equal scores.

    ValueError: a measure without a closed form (ERR, bpref).
    """
    unknown = [measure.key for measure in measures if measure.kind not in _AVERAGED]
    if unknown:
        raise ValueError(f"The mean of {unknown[0]} over all orders has no closed form here.")
    scored = scored_query_ids(qrels).tolist()
    values = {measure.key: np.zeros(len(scored)) for measure in measures}
    for place, query_id in enumerate(scored):
        _, relevant = qrels.of(query_id)
        tied = _Tied.of(run.get(query_id), qrels, query_id)
        for measure in measures:
            # Without a cut-off AP is over R.
            kind = "UncappedAP" if measure == Measure("AP") else measure.kind
            cut = len(tied.hits) if measure.k is None else measure.k
            values[measure.key][place] = _AVERAGED[kind](tied, cut, int(relevant.sum()))
    return values


@dataclass(frozen=True, slots=True)
class _Tied:
    """One query's ranking as groups of equal scores, told for each of its n ranks."""

    hits: Floats
    """(n,) how likely a relevant image is there."""
    judged: Floats
    """(n,) how likely a judged image is there."""
    sizes: Integers
    """(n,) images in the rank's group."""
    relevant: Integers
    """(n,) relevant ones among these."""
    before: Integers
    """(n,) relevant ones in the groups before."""
    starts: Integers
    """(n,) ranks before the group."""
    gains: Floats
    """(n,) the mean gain of the rank's group."""
    all_gains: Integers
    """Of every judged image of the query."""

    @classmethod
    def of(cls, ranking: Ranking | None, qrels: Qrels, query_id: int) -> _Tied:
        ids = np.zeros(0, np.int64) if ranking is None else ranking.image_ids
        scores = np.zeros(0) if ranking is None else ranking.scores
        order = np.argsort(-scores, kind="stable")
        ids, scores = ids[order], scores[order]
        firsts = np.flatnonzero(np.diff(scores, prepend=np.nan) != 0)
        sizes = np.diff(firsts, append=len(ids))
        judged, relevant = qrels.of(query_id)
        all_gains = qrels.gains_of(query_id)
        hits, seen = np.isin(ids, judged[relevant]), np.isin(ids, judged)
        if not len(ids):
            nothing, none = np.zeros(0), np.zeros(0, np.int64)
            return cls(nothing, nothing, none, none, none, none, nothing, all_gains)
        found, known = np.add.reduceat(hits, firsts), np.add.reduceat(seen, firsts)
        gained = np.add.reduceat(qrels.gains_at(query_id, ids), firsts)
        before = np.cumsum(found) - found
        return cls(
            hits=np.repeat(found / sizes, sizes),
            judged=np.repeat(known / sizes, sizes),
            sizes=np.repeat(sizes, sizes),
            relevant=np.repeat(found, sizes),
            before=np.repeat(before, sizes),
            starts=np.repeat(firsts, sizes),
            gains=np.repeat(gained / sizes, sizes),
            all_gains=all_gains,
        )

    def precision_sum(self, cut: int) -> float:
        """The sum of precision@i x rel(i) over i <= cut."""
        ranks = np.arange(1, len(self.hits) + 1)
        # Given a relevant image at a rank, each earlier one of its group is relevant alike.
        also = (self.relevant - 1) / np.maximum(self.sizes - 1, 1)
        precisions = (self.before + 1 + (ranks - self.starts - 1) * also) / ranks
        return float((self.hits * precisions)[:cut].sum())

    def first_hits(self) -> Floats:
        """(n,) how likely the first relevant image is at each rank."""
        likely = np.zeros(len(self.hits))
        for rank in np.flatnonzero((self.before == 0) & (self.relevant > 0)).tolist():
            size, total = int(self.sizes[rank]), int(self.relevant[rank])
            after = size - (rank - int(self.starts[rank])) - 1
            likely[rank] = comb(after, total - 1) / comb(size, total)
        return likely


def _gain(tied: _Tied, cut: int, total: int) -> float:
    worth = metrics.discounts(np.arange(1, len(tied.hits) + 1))
    [ideal] = metrics.graded_ideal_gain([tied.all_gains], np.asarray(cut))
    return float((tied.gains * worth)[:cut].sum() / ideal)


def _reciprocal_rank(tied: _Tied, cut: int, total: int) -> float:
    return float((tied.first_hits() / np.arange(1, len(tied.hits) + 1))[:cut].sum())


def _attended(likely: Floats) -> float:
    return float((likely * metrics.attention(np.arange(1, len(likely) + 1))).sum())


#: Of each kind: its mean over all orders from the groups, the cut-off and R.
_AVERAGED: Final[Mapping[str, Callable[[_Tied, int, int], float]]] = {
    "AP": lambda tied, cut, total: tied.precision_sum(cut) / min(cut, total),
    "UncappedAP": lambda tied, cut, total: tied.precision_sum(cut) / total,
    "AP@R": lambda tied, cut, total: tied.precision_sum(total) / total,
    "nDCG": _gain,
    "RR": _reciprocal_rank,
    "Success": lambda tied, cut, total: float(tied.first_hits()[:cut].sum()),
    "P": lambda tied, cut, total: float(tied.hits[:cut].sum()) / cut,
    "R": lambda tied, cut, total: float(tied.hits[:cut].sum()) / total,
    "CappedR": lambda tied, cut, total: float(tied.hits[:cut].sum()) / min(cut, total),
    "Rprec": lambda tied, cut, total: float(tied.hits[:total].sum()) / total,
    "Judged": lambda tied, cut, total: float(tied.judged[:cut].sum()) / cut,
    "RBP": lambda tied, cut, total: _attended(tied.hits),
    "RBPresidual": lambda tied, cut, total: 1.0 - _attended(tied.judged),
}


def _settled(run: Run, qrels: Qrels, relevant_first: bool) -> dict[int, Ranking]:
    """The run with the images of most gain first, or last, among those with equal scores."""
    settled = {}
    for query_id in set(run) & set(scored_query_ids(qrels).tolist()):
        ranking = run[query_id]
        gains = qrels.gains_at(query_id, ranking.image_ids)
        order = np.lexsort((-gains if relevant_first else gains, -ranking.scores))
        settled[query_id] = _in_order(ranking.image_ids[order])
    return settled


def _in_order(image_ids: npt.NDArray[np.int64]) -> Ranking:
    """A ranking of images in this order, whatever their ids are."""
    return Ranking(image_ids, np.arange(len(image_ids), 0, -1, dtype=np.float64))
