"""The measures: exact values by hand, and agreement with ir-measures on random runs."""

import math
from itertools import permutations

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, P, R, nDCG

from benchmark.metrics import (
    average_precision_at_k,
    ndcg_at_k,
    precision_at_k,
    random_average_precision_at_k,
    recall_at_k,
    reciprocal_rank_at_k,
)


def test_average_precision_has_the_values_of_the_papers_appendix():
    assert average_precision_at_k([1, 0, 0, 0, 0], 5, 2) == 0.5
    assert average_precision_at_k([1, 0, 0, 0, 1], 5, 2) == 0.7


def test_average_precision_is_normalised_by_k_where_there_are_more_positives():
    assert average_precision_at_k([1] * 5, 5, 1000) == 1.0
    assert average_precision_at_k([1, 0, 0, 0, 0], 5, 1000) == 0.2


def test_measures_by_hand():
    order = [0, 1, 0, 1]
    assert precision_at_k(order, 4) == 0.5
    assert recall_at_k(order, 4, 5) == 0.4
    assert average_precision_at_k(order, 4, 5) == (1 / 2 + 2 / 4) / 4
    ideal = sum(1 / math.log2(rank + 1) for rank in (1, 2, 3, 4))
    assert ndcg_at_k(order, 4, 5) == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / ideal)
    assert reciprocal_rank_at_k(order, 4) == 0.5


def test_what_stands_beyond_k_is_not_looked_at():
    order = np.array([False, False, True])
    assert precision_at_k(order, 2) == 0.0
    assert recall_at_k(order, 2, 1) == 0.0
    assert average_precision_at_k(order, 2, 1) == 0.0
    assert ndcg_at_k(order, 2, 1) == 0.0
    assert reciprocal_rank_at_k(order, 2) == 0.0
    assert reciprocal_rank_at_k(order, 3) == 1 / 3


def test_the_declared_k_counts_for_a_shorter_run():
    assert precision_at_k([1], 50) == 0.02
    assert average_precision_at_k([1], 50, 2) == 0.5
    assert reciprocal_rank_at_k([], 50) == 0.0
    assert ndcg_at_k([], 50, 3) == 0.0


@pytest.mark.parametrize("measure", [recall_at_k, average_precision_at_k, ndcg_at_k])
@pytest.mark.parametrize(
    ("order", "k", "total", "message"),
    [([1], 0, 1, "k must be"), ([0], 1, 0, "without relevant"), ([1, 1], 2, 1, "2 hits, but only")],
)
def test_impossible_arguments_are_refused(measure, order, k, total, message):
    with pytest.raises(ValueError, match=message):
        measure(order, k, total)


@pytest.mark.parametrize("measure", [precision_at_k, reciprocal_rank_at_k])
def test_k_must_be_positive(measure):
    with pytest.raises(ValueError, match="k must be"):
        measure([1], 0)


def test_a_table_of_relevances_is_refused():
    with pytest.raises(ValueError, match="shape"):
        precision_at_k(np.ones((2, 2)), 2)


@st.composite
def queries(draw: st.DrawFn) -> tuple[list[bool], int, int]:
    """(relevance in order, k, R), with positives outside the run too."""
    order = draw(st.lists(st.booleans(), max_size=30))
    missing = draw(st.integers(0, 10))
    total = sum(order) + missing
    if total == 0:
        order, total = [*order, True], 1
    return order, draw(st.integers(1, 40)), total


@settings(max_examples=200, deadline=None)
@given(queries())
def test_measures_agree_with_ir_measures(query):
    order, k, total = query
    positives = [f"d{rank}" for rank, hit in enumerate(order) if hit]
    positives += [f"missing{number}" for number in range(total - len(positives))]
    qrels = [ir_measures.Qrel("q", doc, 1) for doc in positives]
    run = [ir_measures.ScoredDoc("q", f"d{rank}", -float(rank)) for rank in range(len(order))]
    # An empty run gives the reference nothing to score; a document that is not relevant doesn't
    # change any measure.
    run.append(ir_measures.ScoredDoc("q", "none", -1000.0))
    measures = [P @ k, R @ k, AP @ k, nDCG @ k, RR @ k]
    expected = ir_measures.calc_aggregate(measures, qrels, run)
    assert precision_at_k(order, k) == pytest.approx(expected[P @ k])
    assert recall_at_k(order, k, total) == pytest.approx(expected[R @ k])
    # The reference normalises by R.
    rescaled = expected[AP @ k] * total / min(total, k)
    assert average_precision_at_k(order, k, total) == pytest.approx(rescaled)
    assert ndcg_at_k(order, k, total) == pytest.approx(expected[nDCG @ k])
    assert reciprocal_rank_at_k(order, k) == pytest.approx(expected[RR @ k])


@settings(max_examples=100, deadline=None)
@given(queries(), st.integers(0, 39))
def test_one_more_hit_among_the_first_k_always_raises_ap(query, position):
    order, k, total = query
    order = (order + [False] * k)[:k]
    if order[position % k]:
        return
    more = order.copy()
    more[position % k] = True
    total = max(total, sum(more))
    before = average_precision_at_k(order, k, total)
    assert before < average_precision_at_k(more, k, total) <= 1.0


def test_random_expectation_is_the_mean_over_all_orders():
    for k, total, size in [(2, 2, 5), (5, 1, 5), (3, 4, 6), (9, 2, 4)]:
        corpus = [1] * total + [0] * (size - total)
        values = [average_precision_at_k(order, k, total) for order in permutations(corpus)]
        expected = sum(values) / len(values)
        assert random_average_precision_at_k(k, total, size) == pytest.approx(expected)


def test_random_expectation_at_its_edges():
    assert random_average_precision_at_k(50, 1, 1) == 1.0
    assert random_average_precision_at_k(50, 3000, 3000) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="4 relevant images in a corpus of 3"):
        random_average_precision_at_k(50, 4, 3)
    with pytest.raises(ValueError, match="k must be"):
        random_average_precision_at_k(0, 1, 3)
