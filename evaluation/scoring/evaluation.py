"""Scores of runs, per query: which queries count, and how rankings are matched with judgments.

A query counts if it has a relevant image. A query that a run misses scores 0, and queries that the
release doesn't have are ignored. Ranks are fixed before anything else: higher scores first, and the
smaller image id first among equal scores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.scoring.measures import Chance, Graded, Kind, Measure, RunRanks
from evaluation.scoring.metrics import DEEPEST, Floats, HitRanks, Integers
from evaluation.scoring.run_files import Ranking
from releases.snapshot.qrels import Qrels, is_rerankable

Run = Mapping[int, Ranking]

#: The size of the hash table in which images are looked up; a power of 2.
_SLOTS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of scoring one run; s queries are scored."""

    measures: tuple[Measure, ...]
    query_ids: list[int]
    """(s,) ascending: all queries with relevant images, including those that the run misses."""
    positives: list[int]
    """(s,) relevant images of each (R)."""
    retrieved: list[int]
    """(s,) images that the run holds for each; 0 where it misses the query."""
    scores: dict[str, Floats]
    """(s,) by the measure's key."""
    missed: list[int]
    """Queries with relevant images that the run has no row for: they score 0."""
    without_positives: list[int]
    """Queries of the release that have no relevant image: left out of the means."""
    unknown: list[int]
    """Queries of the run that the release doesn't have: not scored."""

    def mean(self, measure: Measure) -> float | None:
        """The mean over the scored queries; None when there are none."""
        return float(self.scores[measure.key].mean()) if self.query_ids else None


def evaluate(
    run: Run,
    qrels: Qrels,
    measures: Sequence[Measure],
    *,
    known: Collection[int] | None = None,
) -> Evaluation:
    """Score a run and say what was left out.

    `known` are the queries that the run may hold, by default those of `qrels`; where only one split
    is scored, those of the other split too.
    """
    scored = scored_query_ids(qrels).tolist()
    named = set(qrels.query_ids.tolist())
    retrieved = [len(run[query].image_ids) if query in run else 0 for query in scored]
    return Evaluation(
        measures=tuple(measures),
        query_ids=scored,
        positives=qrels.totals()[_scored(qrels)].tolist(),
        retrieved=retrieved,
        scores=score_run(run, qrels, measures),
        missed=[query for query, count in zip(scored, retrieved, strict=True) if not count],
        without_positives=sorted(named.difference(scored)),
        unknown=sorted(set(run).difference(named if known is None else known)),
    )


def scored_query_ids(qrels: Qrels) -> Integers:
    """The queries with at least one relevant image, ascending: (s,), the order of all scores."""
    ids: Integers = qrels.query_ids[_scored(qrels)]
    return ids


def score_run(run: Run, qrels: Qrels, measures: Sequence[Measure]) -> dict[str, Floats]:
    """A score for each of `scored_query_ids`, (s,), by the measure's key.

    No ranking may hold an image twice, which `read_run` ensures; ValueError where that gives more
    hits than relevant images.
    """
    return {key: scores[0] for key, scores in score_runs([run], qrels, measures).items()}


def score_runs(runs: Sequence[Run], qrels: Qrels, measures: Sequence[Measure]) -> dict[str, Floats]:
    """As `score_run`, for r runs at once: (r, s). Each score is the same as alone."""
    scored = _scored(qrels)
    totals, judged_totals = qrels.totals()[scored], qrels.sizes()[scored]
    hits, judged = _hit_and_judged_ranks(
        runs, qrels, _depths(measures, totals), _judged_depth(measures)
    )
    graded = None
    if qrels.gains is not None and any(measure.kind.graded for measure in measures):
        graded = _graded(runs, qrels, _depths(measures, totals))
    ranks = RunRanks(hits, judged, totals[:, np.newaxis], judged_totals[:, np.newaxis], graded)
    by_key: dict[str, Floats] = {}
    for kind, cuts in _cuts_by_kind(measures).items():
        by_key |= _columns(kind, cuts, kind.score(ranks, cuts))
    return {measure.key: np.ascontiguousarray(by_key[measure.key].T) for measure in measures}


def random_scores(
    qrels: Qrels, corpus_size: int | npt.ArrayLike, measures: Sequence[Measure]
) -> dict[str, Floats]:
    """The exact expectation of each measure, per query, for a uniformly random order: (s,).

    Leaves out the measures whose expectation isn't known (ERR@k). `corpus_size` is how many images
    are put in order, one number or (s,); for re-ranking it is the size of each fixed list.
    ValueError: fewer images than relevant or judged ones.
    """
    scored = _scored(qrels)
    totals, judged_totals = qrels.totals()[scored], qrels.sizes()[scored]
    sizes = np.broadcast_to(np.asarray(corpus_size, dtype=np.int64), totals.shape)
    chance = Chance(
        totals, judged_totals, sizes, None if qrels.gains is None else _all_gains(qrels)
    )
    by_key: dict[str, Floats] = {}
    for kind, cuts in _cuts_by_kind(measures).items():
        if kind.chance is not None:
            by_key |= _columns(kind, cuts, kind.chance(chance, cuts))
    keys = [measure.key for measure in measures if measure.key in by_key]
    return {key: np.ascontiguousarray(by_key[key]) for key in keys}


def sorted_ranking(ranking: Ranking) -> Ranking:
    """The ranking with higher scores first and the smaller image id first among equal scores."""
    ids, scores = ranking.image_ids, ranking.scores
    tied = (scores[1:] == scores[:-1]) & (ids[1:] > ids[:-1])
    if ((scores[1:] < scores[:-1]) | tied).all():
        return ranking
    order = np.lexsort((ids, -scores))
    return Ranking(image_ids=ids[order], scores=scores[order])


def best_rerank(run: Run, qrels: Qrels, depth: int) -> dict[int, Ranking]:
    """The best that re-ranking the first `depth` images of a first stage could give.

    For each query of the qrels, the first `depth` images are sorted by falling gain, ties in the
    first stage's order; the images behind them stay. Scores count down to 1, so that the order is
    fixed. This is the best order for every measure here at any cut-off. Source: Vendrow et al.
    2024, table 3, "Best possible rerank".
    """
    best = {}
    for query_id in sorted(set(run) & set(qrels.query_ids.tolist())):
        ids = sorted_ranking(run[query_id]).image_ids
        first = np.argsort(-qrels.gains_at(query_id, ids[:depth]), kind="stable")
        ordered = np.concatenate([ids[:depth][first], ids[depth:]])
        scores = np.arange(len(ids), 0, -1, dtype=np.float64)
        best[query_id] = Ranking(image_ids=ordered, scores=scores)
    return best


def rerankable_queries(fixed: Mapping[int, Integers], qrels: Qrels) -> list[int]:
    """The queries whose fixed list is fit for re-ranking, ascending.

    At least one and at most half of the list's images are relevant; unjudged ones are not relevant.
    Source: Vendrow et al. 2024, section 3, INQUIRE-Rerank.
    """
    query_ids = set(qrels.query_ids.tolist())
    rerankable = []
    for query_id in sorted(query_ids.intersection(fixed)):
        images, relevant = qrels.of(query_id)
        if is_rerankable(np.isin(fixed[query_id], images[relevant]).tolist()):
            rerankable.append(query_id)
    return rerankable


def rerank_qrels(qrels: Qrels, fixed: Mapping[int, Integers]) -> Qrels:
    """The qrels of the re-ranking task: the queries that are fit for it, and the images of their
    fixed lists.

    Unjudged images of a list are included as not relevant, so R is the number of relevant images
    within the list, and `sizes` are the lists' lengths. ValueError: a list holds an image twice.
    """
    query_ids = rerankable_queries(fixed, qrels)
    owners, ids, flags, gains = [], [], [], []
    for query_id in query_ids:
        images, relevant = qrels.of(query_id)
        owners.append(np.full(len(fixed[query_id]), query_id, dtype=np.int64))
        ids.append(np.asarray(fixed[query_id], dtype=np.int64))
        flags.append(np.isin(fixed[query_id], images[relevant]))
        gains.append(qrels.gains_at(query_id, ids[-1]))
    if not query_ids:
        return Qrels.from_pairs([], [])
    return Qrels.from_arrays(
        query_ids,
        np.concatenate(owners),
        np.concatenate(ids),
        np.concatenate(flags),
        None if qrels.gains is None else np.concatenate(gains),
    )


def _scored(qrels: Qrels) -> npt.NDArray[np.bool_]:
    return qrels.totals() > 0


def _cuts_by_kind(measures: Iterable[Measure]) -> dict[Kind, list[int]]:
    """The cut-offs of each kind, without repeats; empty for a kind without cut-offs."""
    kinds: dict[Kind, list[int]] = {}
    for measure in dict.fromkeys(measures):
        kinds.setdefault(measure.kind, []).extend([measure.k] if measure.k else [])
    return kinds


def _columns(kind: Kind, cuts: Sequence[int], table: Floats) -> dict[str, Floats]:
    """The columns of scores (..., c) at several cut-offs, or (...) without a cut-off, by key."""
    if not kind.has_cut:
        return {kind.name: table}
    return {f"{kind.name}@{k}": table[..., column] for column, k in enumerate(cuts)}


def _depths(measures: Iterable[Measure], totals: Integers) -> Integers:
    """(s,) how deep the measures look into each query's ranking."""
    depths = np.zeros(len(totals), dtype=np.int64)
    for measure in measures:
        whole = totals if measure.kind.within_r else DEEPEST
        depths = np.maximum(depths, whole if measure.k is None else measure.k)
    return depths


def _judged_depth(measures: Iterable[Measure]) -> int:
    return max(
        (measure.k or DEEPEST for measure in measures if measure.kind.needs_judged), default=0
    )


def _hit_and_judged_ranks(
    runs: Sequence[Run], qrels: Qrels, depths: Integers, judged_depth: int
) -> tuple[HitRanks, HitRanks]:
    """The ranks of relevant images down to each query's depth, and of judged images down to
    `judged_depth`; both of shape (s, r)."""
    shape = (len(depths), len(runs))
    hits, judged = _RankedImages(shape), _RankedImages(shape)
    for index, query_id in enumerate(scored_query_ids(qrels).tolist() if runs else []):
        ids = _sorted_ids([run.get(query_id) for run in runs])
        images, relevant = qrels.of(query_id)
        hits.add(index, [ids[: depths[index]] for ids in ids], images[relevant])
        if judged_depth:
            judged.add(index, [ids[:judged_depth] for ids in ids], images)
    return hits.ranks(), judged.ranks()


def _graded(runs: Sequence[Run], qrels: Qrels, depths: Integers) -> Graded:
    """The ranks of images with a gain, down to each query's depth."""
    hits = _RankedImages((len(depths), len(runs)))
    gains = [np.zeros(0, dtype=np.int64)]
    for index, query_id in enumerate(scored_query_ids(qrels).tolist() if runs else []):
        ids = [part[: depths[index]] for part in _sorted_ids([run.get(query_id) for run in runs])]
        images = qrels.of(query_id)[0][qrels.gains_of(query_id) > 0]
        gains.append(qrels.gains_at(query_id, hits.add(index, ids, images)))
    return Graded(hits.ranks(), np.concatenate(gains), _all_gains(qrels))


def _all_gains(qrels: Qrels) -> list[Integers]:
    return [qrels.gains_of(query_id) for query_id in scored_query_ids(qrels).tolist()]


class _RankedImages:
    """The ranks of certain images in the rankings of r runs, gathered query by query."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self._shape = shape
        self._rows: list[Integers] = [np.zeros(0, dtype=np.int64)]
        self._ranks: list[Integers] = [np.zeros(0, dtype=np.int64)]
        self._slots = np.zeros(_SLOTS, dtype=np.int32)

    def add(self, index: int, rankings: Sequence[Integers], images: Integers) -> Integers:
        """Find `images` (ascending ids) in the rankings of the query at `index`, one ranking per
        run; returns the ids found, by run and rank."""
        starts = np.concatenate(([0], np.cumsum([len(ids) for ids in rankings])))
        joined = np.concatenate(rankings)
        positions = _positions_of(joined, images, self._slots)
        counts = np.diff(np.searchsorted(positions, starts))
        self._rows.append(np.repeat(np.arange(len(rankings)) + index * len(rankings), counts))
        self._ranks.append(positions - np.repeat(starts[:-1], counts) + 1)
        ranked: Integers = joined[positions]
        return ranked

    def ranks(self) -> HitRanks:
        return HitRanks.at(self._shape, np.concatenate(self._rows), np.concatenate(self._ranks))


def _sorted_ids(rankings: Sequence[Ranking | None]) -> list[Integers]:
    """The image ids of each ranking by fixed rank; empty for a query that a run misses."""
    present = [ranking for ranking in rankings if ranking is not None]
    already_sorted = not present or _strictly_falling([ranking.scores for ranking in present])
    return [
        np.zeros(0, dtype=np.int64)
        if ranking is None
        else (ranking if already_sorted else sorted_ranking(ranking)).image_ids
        for ranking in rankings
    ]


def _strictly_falling(scores: Sequence[Floats]) -> bool:
    """Whether the scores fall within each ranking, without a tie."""
    joined = np.concatenate(scores)
    falling = joined[1:] < joined[:-1]
    # The last score of a ranking needn't be higher than the first score of the next.
    borders = np.cumsum([len(ranking_scores) for ranking_scores in scores])[:-1] - 1
    falling[borders[(borders >= 0) & (borders < len(falling))]] = True
    return bool(falling.all())


def _positions_of(ids: Integers, images: Integers, slots: npt.NDArray[np.int32]) -> Integers:
    """The indexes in `ids` of those that are among `images` (ascending ids).

    `slots`, zeros before and after, is a hash table by the last bits of the ids: a slot holds 1 +
    the index of an image, or -1 if several images share it; only the latter are searched for. With
    it `bench.metrics` takes 82 ms, with `np.searchsorted` for all images 259 ms.
    """
    keys = images & (_SLOTS - 1)
    numbers = np.arange(1, len(images) + 1, dtype=np.int32)
    slots[keys] = numbers
    slots[keys[slots[keys] != numbers]] = -1
    slot_values = slots[ids & (_SLOTS - 1)]
    slots[keys] = 0
    positions = np.flatnonzero(slot_values)
    candidates, image_indexes = ids[positions], slot_values[positions] - 1
    shared = np.flatnonzero(image_indexes < 0)
    if len(shared):
        image_indexes[shared] = np.minimum(
            np.searchsorted(images, candidates[shared]), len(images) - 1
        )
    confirmed: Integers = positions[images[image_indexes] == candidates]
    return confirmed
