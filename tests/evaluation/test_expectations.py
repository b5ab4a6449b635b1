"""What chance gives: the mean over all orders of small sets, and identities for large ones."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from evaluation.scoring import expectations as chance
from evaluation.scoring import metrics

pytestmark = pytest.mark.pure

CUT = {
    chance.random_recall_at_k: metrics.recall_at_k,
    chance.random_capped_recall_at_k: metrics.capped_recall_at_k,
    chance.random_average_precision_at_k: metrics.average_precision_at_k,
    chance.random_ndcg_at_k: metrics.ndcg_at_k,
    chance.random_uncapped_average_precision_at_k: metrics.uncapped_average_precision_at_k,
}
CUT_ALONE = {
    chance.random_precision_at_k: metrics.precision_at_k,
    chance.random_reciprocal_rank_at_k: metrics.reciprocal_rank_at_k,
    chance.random_judged_at_k: metrics.judged_at_k,
    chance.random_success_at_k: metrics.success_at_k,
}
WHOLE = {
    chance.random_r_precision: metrics.r_precision,
    chance.random_average_precision_at_r: metrics.average_precision_at_r,
    chance.random_average_precision: metrics.average_precision,
}
WHOLE_ALONE = {
    chance.random_rank_biased_precision: metrics.rank_biased_precision,
    chance.random_rank_biased_residual: metrics.rank_biased_residual,
}
KS = [1, 2, 3, 5, 9]


def all_orders(total: int, size: int) -> np.ndarray:
    """(orders, size): every place that the relevant ones can have, each as likely as any other."""
    places = list(combinations(range(size), total))
    orders = np.zeros((len(places), size), dtype=bool)
    for row, chosen in enumerate(places):
        orders[row, list(chosen)] = True
    return orders


@pytest.mark.parametrize("size", range(1, 8))
def test_every_expectation_is_the_mean_over_all_orders(size):
    for total in range(1, size + 1):
        orders = all_orders(total, size)
        for expected, measure in CUT.items():
            values = measure(orders, total, KS).mean(axis=0)
            assert expected(total, size, KS) == pytest.approx(values, rel=1e-13)
        for expected, measure in CUT_ALONE.items():
            values = measure(orders, KS).mean(axis=0)
            assert expected(total, size, KS) == pytest.approx(values, rel=1e-13)
        for expected, measure in WHOLE.items():
            assert expected(total, size) == pytest.approx(measure(orders, total).mean(), rel=1e-13)
        for expected, measure in WHOLE_ALONE.items():
            assert expected(total, size) == pytest.approx(measure(orders).mean(), rel=1e-13)
        values = metrics.bpref(orders, np.ones_like(orders), total, size)
        assert chance.random_bpref(total, size) == pytest.approx(values.mean(), rel=1e-13)


@pytest.mark.parametrize("expected", [*CUT, *CUT_ALONE])
def test_many_queries_at_once_give_what_each_gives_alone(expected):
    totals, sizes = np.array([[3, 1], [7, 7]]), np.array([10, 7])
    together = expected(totals, sizes, [4, 50])
    for row in np.ndindex(2, 2):
        for column, k in enumerate((4, 50)):
            alone = expected(totals[row], sizes[row[1]], k)
            assert together[row][column] == pytest.approx(alone, rel=1e-15)


def exact_reciprocal_rank(total: int, size: int, k: int) -> Fraction:
    """The sum over first ranks with binomials, in fractions."""
    last = min(k, size - total + 1)
    ways = sum(Fraction(math.comb(size - i, total - 1), i) for i in range(1, last + 1))
    return ways / math.comb(size, total)


@pytest.mark.parametrize(("total", "size"), [(1, 1500), (2, 1500), (700, 1500), (1499, 1500)])
def test_reciprocal_rank_is_exact_in_larger_sets(total, size):
    for k in (1, 10, 1500, 9999):
        exact = float(exact_reciprocal_rank(total, size, k))
        assert chance.random_reciprocal_rank_at_k(total, size, k) == pytest.approx(exact, rel=1e-12)


def test_a_corpus_of_five_millions_is_stable_to_its_last_rank():
    size = 5_000_000
    harmonic = math.fsum(1 / rank for rank in range(1, size + 1))
    # One relevant image is at each rank alike.
    alone = chance.random_reciprocal_rank_at_k(1, size, [1, 100, size])
    hundred = math.fsum(1 / rank for rank in range(1, 101))
    assert alone == pytest.approx([1 / size, hundred / size, harmonic / size], rel=1e-10)
    assert chance.random_average_precision_at_k(1, size, size) == pytest.approx(harmonic / size)
    # All but one relevant: the first hit is at rank 1 or 2.
    most = chance.random_reciprocal_rank_at_k(size - 1, size, size)
    assert most == pytest.approx(1 - 0.5 / size, rel=1e-14)
    assert chance.random_recall_at_k(131, size, 50) == pytest.approx(50 / size)


def test_a_query_without_images_has_nothing_judged():
    assert chance.random_judged_at_k([0, 5], [0, 10], 5).tolist() == [0.0, 0.5]


@pytest.mark.parametrize("expected", CUT)
def test_impossible_sets_are_refused(expected):
    with pytest.raises(ValueError, match="4 relevant images in a corpus of 3"):
        expected(4, 3, 50)
    with pytest.raises(ValueError, match="k must be"):
        expected(1, 3, 0)
    with pytest.raises(ValueError, match="without relevant"):
        expected([1, 0], 3, 1)
