"""Scores of a run against a release, per query and averaged."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from benchmark.metrics import (
    average_precision_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank_at_k,
)


@dataclass(frozen=True, slots=True)
class Scores:
    """The measures of one query or their means, each from 0 to 1, all cut at the same k."""

    precision: float
    recall: float
    ap: float
    ndcg: float
    rr: float
    """Reciprocal rank; its mean is MRR."""


NO_SCORES = Scores(precision=0.0, recall=0.0, ap=0.0, ndcg=0.0, rr=0.0)


@dataclass(frozen=True, slots=True)
class QueryScores:
    query_id: int
    positives: int
    """Relevant images in the release (R)."""
    retrieved: int
    """Images that the run holds for the query; 0 where it misses the query."""
    scores: Scores


@dataclass(frozen=True, slots=True)
class Evaluation:
    k: int
    queries: list[QueryScores]
    """By query id; all queries with positives, those that the run misses included."""
    mean: Scores | None
    """Over `queries`; None when there are none."""
    missed: list[int]
    """Queries with positives that the run has no row for: they score 0."""
    without_positives: list[int]
    """Queries of the release that have no relevant image: left out of the means."""
    unknown: list[int]
    """Queries of the run that the release doesn't have: not scored."""


def evaluate(
    run: Mapping[int, npt.NDArray[np.int64]],
    relevant: Mapping[int, Collection[int]],
    *,
    k: int,
    known: Collection[int] | None = None,
) -> Evaluation:
    """Score a run.

    `run` gives each query's image ids, best first and without repeats; `relevant` gives each query
    to be scored its relevant image ids (none for a query without positives). `known` are the
    queries that the run may hold without being told so, by default those of `relevant`: with one
    split to be scored, those of the other one too. Every query of `relevant` with positives counts
    in the means, whether the run holds it or not. ValueError: k < 1.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1: {k}")
    scored = [
        _query_scores(query_id, run.get(query_id), relevant[query_id], k)
        for query_id in sorted(relevant)
        if relevant[query_id]
    ]
    return Evaluation(
        k=k,
        queries=scored,
        mean=_mean([query.scores for query in scored]) if scored else None,
        missed=[query.query_id for query in scored if not query.retrieved],
        without_positives=sorted(query_id for query_id in relevant if not relevant[query_id]),
        unknown=sorted(set(run).difference(relevant if known is None else known)),
    )


def _query_scores(
    query_id: int,
    image_ids: npt.NDArray[np.int64] | None,
    relevant: Collection[int],
    k: int,
) -> QueryScores:
    total = len(relevant)
    if image_ids is None or not len(image_ids):
        return QueryScores(query_id=query_id, positives=total, retrieved=0, scores=NO_SCORES)
    positives = np.fromiter(relevant, dtype=np.int64, count=total)
    hits = np.isin(image_ids[:k], positives)
    scores = Scores(
        precision=precision_at_k(hits, k),
        recall=recall_at_k(hits, k, total),
        ap=average_precision_at_k(hits, k, total),
        ndcg=ndcg_at_k(hits, k, total),
        rr=reciprocal_rank_at_k(hits, k),
    )
    return QueryScores(query_id, positives=total, retrieved=len(image_ids), scores=scores)


def _mean(scores: list[Scores]) -> Scores:
    """Means that don't depend on the order of the queries (exact sums)."""
    return Scores(
        **{
            measure.name: math.fsum(getattr(score, measure.name) for score in scores) / len(scores)
            for measure in fields(Scores)
        }
    )
