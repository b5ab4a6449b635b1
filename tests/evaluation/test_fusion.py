"""Fused rankings by hand, and the paired tests beside the randomization test."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.scoring.fusion import fuse, normalized
from evaluation.scoring.run_files import Ranking
from evaluation.scoring.significance import randomization_test, t_test, wilcoxon_test

pytestmark = pytest.mark.pure


def ranking(**scores: float) -> Ranking:
    """Of images called `i7`."""
    ids = [int(name[1:]) for name in scores]
    return Ranking(np.array(ids, np.int64), np.array(list(scores.values()), np.float64))


FIRST = {1: ranking(i5=0.9, i3=0.5, i4=0.1), 2: ranking(i8=1)}
SECOND = {1: ranking(i3=30, i6=28, i5=20)}


@pytest.mark.parametrize(
    ("method", "normalization", "expected"),
    [
        # 5 and 3 have the ranks 1 and 3, 2 and 1.
        ("rrf", "min-max", {3: 1 / 62 + 1 / 61, 5: 1 / 61 + 1 / 63, 6: 1 / 62}),
        ("combsum", "min-max", {3: 1.5, 5: 1.0, 6: 0.8}),
        ("combmnz", "min-max", {3: 3.0, 5: 2.0, 6: 0.8}),
        # Over the standard deviations 0.32660 of (0.9, 0.5, 0.1) and 4.32049 of (30, 28, 20).
        ("combsum", "z", {3: 0.4 / 0.32660 + 10 / 4.32049, 5: 0.8 / 0.32660, 6: 8 / 4.32049}),
    ],
)
def test_scores_by_hand(method, normalization, expected):
    found = fuse([FIRST, SECOND], method, normalization)
    assert sorted(found) == [1, 2]
    assert found[2].image_ids.tolist() == [8]
    assert found[1].image_ids.tolist() == list(expected)
    assert found[1].scores == pytest.approx(list(expected.values()), rel=1e-5)


def test_equal_images_come_by_id_and_equal_scores_count_as_found():
    same = {1: ranking(i2=1, i1=1)}
    assert fuse([same, {1: ranking(i3=7)}], "combsum")[1].image_ids.tolist() == [1, 2]
    assert normalized(np.full(2, 0.3), "z").tolist() == [1, 1]
    assert normalized(np.zeros(0), "min-max").tolist() == []
    with pytest.raises(ValueError, match="no fusion by 'borda'"):
        fuse([same], "borda")


def test_paired_tests_by_other_means():
    """Student's sleep data (1908): t = -4.0621 with 9 degrees of freedom; R prints 0.00283 for the
    t-test. With one difference of 0 left out all 9 signs are equal, so Wilcoxon's p is 2 / 2^9."""
    first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
    second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]
    assert t_test(first, second) == pytest.approx(0.00283, abs=5e-6)
    assert wilcoxon_test([1, 2, 3, 4, 5, 6, 7, 8, 9, 3], [0] * 9 + [3]) == 2 / 2**9
    assert wilcoxon_test(first, second) < 0.01
    assert randomization_test(first, second) == pytest.approx(t_test(first, second), abs=0.005)
    for test in (t_test, wilcoxon_test):
        assert test([1, 2], [1, 2]) == 1
        assert test([], []) == 1
    assert (t_test([1], [0]), t_test([2, 3], [1, 2])) == (1, 0)
