"""The measures: exact values by hand and from papers, and the formulas written out naively."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.scoring.metrics import (
    HitRanks,
    average_precision_at_k,
    average_precision_at_r,
    bpref,
    capped_recall_at_k,
    judged_at_k,
    ndcg_at_k,
    precision_at_k,
    r_precision,
    rank_biased_precision,
    rank_biased_residual,
    recall_at_k,
    reciprocal_rank_at_k,
)

pytestmark = pytest.mark.pure

WITH_TOTALS = [recall_at_k, capped_recall_at_k, average_precision_at_k, ndcg_at_k]


def test_values_that_papers_print():
    # INQUIRE's appendix.
    assert average_precision_at_k([1, 0, 0, 0, 0], 2, 5) == 0.5
    assert average_precision_at_k([1, 0, 0, 0, 1], 2, 5) == 0.7
    # ECCV Caption, appendix D.1, "the number of the positives is 8".
    for order, expected in (
        ([0, 1, 1, 1, 1, 1, 1, 1], 66.0),
        ([1, 0, 0, 0, 0, 0, 0, 0], 12.5),
        ([0, 0, 0, 0, 0, 1, 1, 1], 10.3),
        ([0, 0, 0, 0, 0, 0, 0, 0], 0.0),
    ):
        assert round(100 * float(average_precision_at_r(order, 8)), 1) == expected


def test_measures_by_hand():
    order = [0, 1, 0, 1]
    assert precision_at_k(order, 4) == 0.5
    assert recall_at_k(order, 5, 4) == 0.4
    assert capped_recall_at_k(order, 5, 4) == 0.5
    assert average_precision_at_k(order, 5, 4) == (1 / 2 + 2 / 4) / 4
    ideal = sum(1 / math.log2(rank + 1) for rank in (1, 2, 3, 4))
    assert ndcg_at_k(order, 5, 4) == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / ideal)
    assert reciprocal_rank_at_k(order, 4) == 0.5
    assert r_precision(order, 2) == 0.5
    assert average_precision_at_r(order, 2) == 0.25
    assert judged_at_k([1, 1, 0, 1], 4) == 0.75
    # Over k where there are more relevant images.
    assert average_precision_at_k([1, 0, 0, 0, 0], 1000, 5) == 0.2


def test_what_stands_beyond_the_cut_is_not_looked_at():
    order = np.array([False, False, True])
    assert precision_at_k(order, 2) == judged_at_k(order, 2) == 0.0
    for measure in WITH_TOTALS:
        assert measure(order, 1, 2) == 0.0
    assert reciprocal_rank_at_k(order, 2) == 0.0
    assert reciprocal_rank_at_k(order, 3) == 1 / 3
    assert r_precision(order, 2) == average_precision_at_r(order, 2) == 0.0


def test_the_declared_k_counts_for_a_shorter_run():
    assert precision_at_k([1], 50) == judged_at_k([1], 50) == 0.02
    assert average_precision_at_k([1], 2, 50) == 0.5
    assert reciprocal_rank_at_k([], 50) == 0.0
    assert ndcg_at_k([], 3, 50) == 0.0
    assert capped_recall_at_k([1], 4, 50) == recall_at_k([1], 4, 50) == 0.25
    assert r_precision([1], 4) == average_precision_at_r([1], 4) == 0.25


def test_many_rankings_and_cutoffs_at_once_give_what_each_gives_alone():
    random = np.random.default_rng(7)
    hits = random.random((3, 4, 40)) < 0.3
    totals = hits.sum(axis=-1) + 1
    ks = [10, 1, 100, 10]
    ranks = HitRanks.of(hits)
    for measure in WITH_TOTALS:
        together = measure(ranks, totals, ks)
        assert together.shape == (3, 4, 4)
        for row in np.ndindex(3, 4):
            alone = [measure(hits[row], totals[row], k) for k in ks]
            assert together[row].tolist() == alone
    for measure in (precision_at_k, reciprocal_rank_at_k, judged_at_k):
        together = measure(ranks, ks)
        for row in np.ndindex(3, 4):
            assert together[row].tolist() == [measure(hits[row], k) for k in ks]
    for measure in (r_precision, average_precision_at_r):
        together = measure(ranks, totals)
        assert together.shape == (3, 4)
        for row in np.ndindex(3, 4):
            assert together[row] == measure(hits[row], totals[row])


def test_no_rankings_and_rankings_of_nothing_have_their_shapes():
    assert average_precision_at_k(np.zeros((0, 5)), np.zeros(0, int) + 1, [1, 5]).shape == (0, 2)
    assert ndcg_at_k(np.zeros((0, 5)), np.ones(0, int), 5).shape == (0,)
    assert precision_at_k(np.zeros((2, 0)), [1, 5]).tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("measure", WITH_TOTALS)
def test_impossible_arguments_are_refused(measure):
    for order, k, total, message in (
        ([1], [1, 0], 1, "k must be at least 1"),
        ([1], 1.5, 1, "k must be a whole number"),
        ([0], 1, 0, "without relevant"),
        ([[1, 0], [1, 1]], 2, [1, 1], "2 hits, but only 1"),
    ):
        with pytest.raises(ValueError, match=message):
            measure(order, total, k)


@st.composite
def queries(draw: st.DrawFn) -> tuple[list[bool], int, int]:
    """(relevance in order, k, R), with positives outside the run too."""
    order = draw(st.lists(st.booleans(), max_size=30))
    total = max(1, sum(order) + draw(st.integers(0, 10)))
    return order, draw(st.integers(1, 40)), total


def appendix_g(order: list[bool], k: int, total: int) -> float:
    """AP@k of INQUIRE's appendix G, sum by sum: Pr@i x rel(i) over i = 1 … k, over min(k, R)."""
    value = 0.0
    for i in range(1, k + 1):
        rel = order[i - 1] if i <= len(order) else False
        precision = sum(order[:i]) / i
        value += precision * rel
    return value / min(k, total)


@settings(max_examples=100)
@given(queries())
def test_average_precision_is_the_formula_of_inquires_appendix(query):
    order, k, total = query
    assert average_precision_at_k(order, total, k) == pytest.approx(appendix_g(order, k, total))
    assert average_precision_at_r(order, total) == pytest.approx(appendix_g(order, total, total))


@settings(max_examples=50)
@given(queries())
def test_every_measure_is_between_0_and_1_and_1_for_the_best_order(query):
    order, k, total = query
    best = [True] * total
    for measure in WITH_TOTALS:
        assert 0 <= measure(order, total, k) <= 1
        if measure is not recall_at_k:
            assert measure(best, total, k) == pytest.approx(1)
    assert recall_at_k(best, total, total) == 1
    assert r_precision(best, total) == 1
    assert average_precision_at_r(best, total) == pytest.approx(1)


def test_what_was_not_judged_and_what_follows_is_the_residual_of_rbp():
    assert rank_biased_precision([True, False, True]) == pytest.approx(0.1 + 0.081)
    assert rank_biased_residual([True, False, True]) == pytest.approx(1 - (0.1 + 0.081))
    assert rank_biased_residual([False] * 3) == 1


def test_bpref_counts_judged_negatives_before_each_relevant_image():
    # One of two negatives before the second hit; the third relevant image isn't retrieved.
    hits, judged = [True, False, False, True], [True, True, False, True]
    assert bpref(hits, judged, 3, 5) == pytest.approx((1 + (1 - 1 / 2)) / 3)
    assert bpref(hits, hits, 2, 2) == 1
