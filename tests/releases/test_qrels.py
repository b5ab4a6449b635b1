"""Judged pairs as arrays: any order in, one order out, and what is refused."""

import numpy as np
import pytest

from releases.snapshot.qrels import Qrels

pytestmark = pytest.mark.pure

PAIRS = [(9, 5, True), (3, 8, False), (3, 2, True), (9, 1, False), (3, 9, True)]


def test_pairs_in_any_order_become_the_same_arrays():
    made = Qrels.from_pairs([9, 3, 4], PAIRS)
    assert made.query_ids.tolist() == [3, 4, 9]
    assert made.offsets.tolist() == [0, 3, 3, 5]
    assert made.image_ids.tolist() == [2, 8, 9, 1, 5]
    assert made.relevant.tolist() == [True, False, True, False, True]
    assert (made.totals().tolist(), made.sizes().tolist()) == ([2, 0, 1], [3, 0, 2])
    for pairs in (sorted(PAIRS), PAIRS[::-1]):
        columns = [np.array(column) for column in zip(*pairs, strict=True)]
        again = Qrels.from_arrays([3, 4, 9], *columns)
        for name in ("query_ids", "offsets", "image_ids", "relevant"):
            assert getattr(again, name).tolist() == getattr(made, name).tolist()


def test_a_querys_part():
    made = Qrels.from_pairs([9, 3, 4], PAIRS)
    images, relevant = made.of(9)
    assert (images.tolist(), relevant.tolist()) == ([1, 5], [False, True])
    assert made.of(4)[0].tolist() == []
    with pytest.raises(KeyError):
        made.of(5)


def test_nothing_is_nothing():
    made = Qrels.from_pairs([], [])
    assert (len(made.query_ids), made.offsets.tolist(), len(made.image_ids)) == (0, [0], 0)
    assert made.totals().tolist() == []


def test_impossible_pairs_are_refused():
    for pair, message in (((9, 5, False), "twice"), ((5, 5, False), "isn't named")):
        with pytest.raises(ValueError, match=message):
            Qrels.from_pairs([9, 3, 4], [*PAIRS, pair])
