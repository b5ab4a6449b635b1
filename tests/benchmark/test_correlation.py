"""Rank correlations: values by hand, ties, what is missing and what isn't defined."""

import pytest

from benchmark.scoring.correlation import correlations, tau_b


def test_values_by_hand():
    assert tau_b([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert tau_b([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    # Of six pairs five agree and one doesn't.
    assert tau_b([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(4 / 6)


def test_ties_are_those_of_the_variant_b():
    # Pairs: 2 agree, 0 disagree, 1 is tied in the first list: 2 / sqrt(2 x 3).
    assert tau_b([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / 6**0.5)


@pytest.mark.parametrize("lists", [([], []), ([1.0], [2.0]), ([1, 1], [1, 2]), ([1, 2], [3, 3])])
def test_what_is_not_defined_is_none(lists):
    assert tau_b(*lists) is None


def test_columns_are_compared_on_what_both_have():
    found = correlations(
        {
            "mAP@50": {"a": 0.1, "b": 0.2, "c": 0.3, "d": None},
            "MRR@50": {"a": 0.5, "b": 0.4, "d": 0.9},
            "P@50": {"c": 0.1, "a": float("nan")},
        }
    )
    assert found.names == ["mAP@50", "MRR@50", "P@50"]
    assert found.taus == [[1, -1, None], [-1, 1, None], [None, None, None]]
    assert found.counts == [[3, 2, 1], [2, 3, 0], [1, 0, 1]]


def test_no_columns():
    assert correlations({}).taus == []
