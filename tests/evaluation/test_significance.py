"""Intervals, tests and groups: exact where it can be told by hand, and against scipy."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evaluation.scoring.significance import (
    bootstrap_intervals,
    grouped,
    groups,
    holm,
    letters,
    pairwise_p_values,
    randomization_test,
    significant_pairs,
)

pytestmark = pytest.mark.pure


def random_scores(runs: int, queries: int, step: float, seed: int = 1) -> np.ndarray:
    """Runs whose means rise by about `step` over queries of differing difficulty."""
    random = np.random.default_rng(seed)
    ease = random.random(queries)
    noise = random.normal(0, 0.1, (runs, queries))
    return np.clip(ease + noise + np.arange(runs)[:, np.newaxis] * step, 0, 1)


def test_intervals_are_those_of_scipys_percentile_bootstrap():
    scores = random_scores(3, 60, 0.1)
    intervals = bootstrap_intervals(scores)
    assert intervals.shape == (3, 2)
    for run, (low, high) in zip(scores, intervals, strict=True):
        random = np.random.default_rng(3)
        theirs = stats.bootstrap(
            (run,), np.mean, n_resamples=10_000, method="percentile", rng=random
        ).confidence_interval
        assert low < run.mean() < high
        assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.005)


def test_intervals_come_again_and_belong_to_one_run_alone():
    scores = random_scores(3, 60, 0.1)
    again = bootstrap_intervals(scores)
    assert again.tolist() == bootstrap_intervals(scores).tolist()
    assert bootstrap_intervals(scores[1]) == pytest.approx(again[1], rel=1e-12)
    assert bootstrap_intervals(scores, seed=5).tolist() != again.tolist()


def test_intervals_of_little():
    assert bootstrap_intervals([[0.5], [0.25]]).tolist() == [[0.5, 0.5], [0.25, 0.25]]
    assert np.isnan(bootstrap_intervals(np.zeros((2, 0)))).all()
    for wrong in ({"level": 1.0}, {"level": 0.0}, {"samples": 0}):
        with pytest.raises(ValueError, match="level must be"):
            bootstrap_intervals([0.5, 0.6], **wrong)


def test_few_queries_are_tested_with_all_flips_exactly():
    first, second = np.array([0.9, 0.5, 0.8, 0.4]), np.array([0.6, 0.5, 0.7, 0.6])
    differences = first - second
    flips = [np.dot(signs, differences) for signs in product((1, -1), repeat=4)]
    far = sum(abs(flip) >= abs(differences.sum()) - 1e-12 for flip in flips)
    assert randomization_test(first, second) == far / 16
    # One query says nothing, and six that all point one way are as rare as can be.
    assert randomization_test([0.9], [0.1]) == 1.0
    assert randomization_test([0.5] * 6, [0.4] * 6) == 2 / 64


def test_sums_that_are_equal_on_paper_count_as_equal():
    # 0.1 + 0.2 and 0.3 differ in their last bit.
    assert randomization_test([0.3, 0.0, 0.0], [0.0, 0.1, 0.2]) == 1.0
    assert randomization_test([], []) == 1.0
    # Of drawn flips the one that was seen is one.
    assert randomization_test(np.full(40, 0.9), np.full(40, 0.1), samples=999) == 1 / 1000


def test_many_queries_agree_with_scipys_permutation_test():
    scores = random_scores(2, 30, 0.03, seed=4)
    ours = randomization_test(*scores, samples=50_000)
    theirs = stats.permutation_test(
        tuple(scores),
        lambda one, other, axis: np.mean(one - other, axis=axis),
        permutation_type="samples",
        n_resamples=50_000,
        vectorized=True,
        rng=np.random.default_rng(2),
    ).pvalue
    assert 0.001 < ours < 0.9
    assert ours == pytest.approx(theirs, abs=0.01)


@pytest.mark.parametrize("queries", [6, 50])
def test_all_pairs_at_once_give_what_each_gives_alone(queries):
    scores = random_scores(5, queries, 0.02)
    table = pairwise_p_values(scores, samples=3000)
    assert table.tolist() == table.T.tolist()
    assert np.diag(table).tolist() == [1.0] * 5
    for one, other in combinations(range(5), 2):
        alone = randomization_test(scores[one], scores[other], samples=3000)
        assert table[one, other] == alone


def test_enough_flips_are_drawn_for_a_correction_by_many_pairs():
    apart = significant_pairs(np.linspace(0, 1, 40)[:, np.newaxis] + np.zeros((40, 30)))
    # 780 pairs: with 10,000 flips alone, the smallest p-value would be 0.078 when corrected.
    assert apart.sum() == 40 * 39


def test_holms_correction_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


def test_groups_of_clearly_different_and_of_equal_runs():
    same = np.tile(random_scores(1, 40, 0)[0] * 0.3, (3, 1))
    better = same[:1] + 0.5
    table = np.concatenate([same, better])
    assert groups(table) == [[3], [0, 1, 2]]
    assert letters(groups(table), 4) == ["b", "b", "b", "a"]
    assert groups(same) == [[0, 1, 2]]
    assert groups(table[:1]) == [[0]]
    assert groups(np.zeros((0, 5))) == []
    assert groups(np.zeros((2, 0))) == [[0, 1]]


def test_a_chain_of_runs_shares_letters_between_neighbours():
    apart = np.zeros((4, 4), dtype=bool)
    for one, other in ((0, 2), (0, 3), (1, 3)):
        apart[one, other] = apart[other, one] = True
    found = grouped(apart, [0, 1, 2, 3])
    assert found == [[0, 1], [1, 2], [2, 3]]
    assert letters(found, 4) == ["a", "ab", "bc", "c"]
    assert grouped(apart, [3, 2, 1, 0]) == [[3, 2], [2, 1], [1, 0]]


@settings(max_examples=30)
@given(st.integers(1, 7), st.data())
def test_two_runs_share_a_letter_if_and_only_if_they_do_not_differ(runs, data):
    pairs = list(combinations(range(runs), 2))
    chosen = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    order = data.draw(st.permutations(range(runs)))
    apart = np.zeros((runs, runs), dtype=bool)
    for one, other in chosen:
        apart[one, other] = apart[other, one] = True
    found = grouped(apart, order)
    names = letters(found, runs)
    for one, other in pairs:
        assert bool(set(names[one]) & set(names[other])) != apart[one, other]
    # None could be left out: each is as large as can be.
    largest = []
    for size in range(runs, 0, -1):
        for some in combinations(range(runs), size):
            free = not any(apart[pair] for pair in combinations(some, 2))
            if free and not any(set(some) <= kept for kept in largest):
                largest.append(set(some))
    assert sorted(map(sorted, found)) == sorted(map(sorted, largest))
    best = [order.index(group[0]) for group in found]
    assert best == sorted(best)


def test_more_groups_than_letters():
    names = letters([[number] for number in range(28)], 28)
    assert (names[0], names[25], names[26], names[27]) == ("a", "z", "aa", "ab")
    assert letters([[number, 0] for number in range(28)], 28)[0].split(".")[-2:] == ["aa", "ab"]
