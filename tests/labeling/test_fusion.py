"""Reciprocal rank fusion by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeling.candidates.fusion import first_unjudged, fuse, list_size, put_first

pytestmark = pytest.mark.pure

RANKINGS = st.lists(st.lists(st.integers(1, 40), unique=True, max_size=30), max_size=4)


def test_an_image_that_both_rank_well_is_before_one_that_one_ranks_best():
    assert fuse([[1, 2, 3], [4, 2, 5]]) == [
        (2, 2 / 62),
        (1, 1 / 61),
        (4, 1 / 61),
        (3, 1 / 63),
        (5, 1 / 63),
    ]


def test_one_ranking_keeps_its_order():
    assert [one for one, _ in fuse([[9, 3, 7, 1]])] == [9, 3, 7, 1]
    assert fuse([]) == []


@given(RANKINGS)
def test_the_order_is_that_of_exact_fractions(rankings):
    sums: dict[int, Fraction] = {}
    for ranking in rankings:
        for rank, one in enumerate(ranking, start=1):
            sums[one] = sums.get(one, Fraction(0)) + Fraction(1, 60 + rank)
    order = fuse(rankings)
    assert [one for one, _ in order] == sorted(sums, key=lambda one: (-sums[one], one))
    assert order == fuse(rankings[::-1])
    assert all(score == float(sums[one]) for one, score in order)


def test_sums_that_doubles_add_differently_are_equal():
    # The ranks 1, 2 and 7 in two orders: sums of doubles would put 9 before 5.
    assert 1 / 61 + 1 / 67 + 1 / 62 < 1 / 62 + 1 / 61 + 1 / 67
    rankings = [[5, 9, 0, 0, 0, 0, 0], [9, 0, 0, 0, 0, 0, 5], [0, 5, 0, 0, 0, 0, 9]]
    # Each 0 is an image of its own.
    others = iter(range(100, 200))
    numbered = [[one or next(others) for one in ranking] for ranking in rankings]
    assert [one for one, _ in fuse(numbered)][:2] == [5, 9]


def test_an_added_models_first_fifty_come_first_unless_judged():
    old, new = list(range(1, 201)), list(range(200, 0, -1))
    first = first_unjudged([new], judged={200, 160})
    assert first == set(range(151, 200)) - {160}
    order = put_first(fuse([old, new]), first)
    assert {one for one, _ in order[:48]} == first
    rest = [place for place in fuse([old, new]) if place[0] not in first]
    assert order[48:] == rest


def test_a_list_reaches_to_the_last_of_each_models_first_fifty():
    alike, other = list(range(1, 301)), [*range(1000, 1100), *range(1, 200)]
    rankings = [alike, alike, other]
    order = fuse(rankings)
    size = list_size(order, rankings, depth=50)
    assert order[size - 1][0] == 1049
    assert {1049, 50} <= {one for one, _ in order[:size]}
    assert list_size(order, rankings, depth=350) == 350
    assert list_size(order, rankings, depth=5000) == len(order)
