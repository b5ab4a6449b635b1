"""Scores and means that are equal on paper count as equal, and no others do, against fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluation.leaderboard.board import Board, best_runs, make_board, places, ranks_among, verdicts
from evaluation.leaderboard.statistics import groups
from evaluation.leaderboard.table import _few_judged
from evaluation.runs import rescoring
from evaluation.scoring import significance
from evaluation.scoring.bias import PartScores, PoolBias, pool_bias
from evaluation.scoring.hidden_labels import summarize
from evaluation.scoring.measures import DEFAULT_MEASURES, Measure, parse_measure
from evaluation.scoring.metrics import (
    HitRanks,
    average_precision_at_k,
    graded_expected_reciprocal_rank_at_k,
)
from evaluation.scoring.missing import (
    FirstImages,
    least_difference,
    least_mean_difference,
    lowest_mean,
)
from evaluation.scoring.rounding import mean_margin, score_error, score_margin, settled
from evaluation.scoring.run_files import Ranking
from releases.snapshot.qrels import Qrels
from tests.evaluation.board import query_of, run_values

pytestmark = pytest.mark.pure

#: Hits among the first ten images of three queries: 13/30 both, though the mean of their
#: differences isn't 0 as a double.
EQUAL = ((4, 7, 2), (3, 5, 5))
RECALL = parse_measure("R@10")


def board_of(hits: Sequence[Sequence[int]], total: int, measure: str = "R@10") -> Board:
    """A board of runs with so many hits of `total` at each query."""
    queries = {number: query_of(number, split="test") for number in range(1, len(hits[0]) + 1)}
    runs = {
        run: run_values(
            {number: count / total for number, count in enumerate(counts, start=1)},
            measure=measure,
        )
        for run, counts in enumerate(hits, start=1)
    }
    return make_board(runs, queries, queries, split="test")


def first_images(hits: int, total: int = 10) -> FirstImages:
    """A run's first ten images of a query, of which so many are relevant."""
    relevant = np.arange(10) < hits
    return FirstImages(np.arange(10), relevant, np.zeros(10, np.bool_), total, 0)


def least(first: Sequence[int], second: Sequence[int], measure: Measure = RECALL) -> float:
    """How far a run with such hits is ahead of another where nothing is missing."""
    one, other = ([first_images(hits) for hits in run] for run in (first, second))
    return least_mean_difference(one, other, measure, 0)


def test_the_example_is_one_of_rounding():
    pairs = zip(*EQUAL, strict=True)
    tables = [
        least_difference(first_images(one), first_images(other), RECALL, 0) for one, other in pairs
    ]
    assert lowest_mean(np.stack(tables), 0) > 0
    assert least(*EQUAL) == 0


def test_values_within_the_margin_of_a_neighbor_are_the_lowest_of_them():
    values = [0.5, 0.3, np.nan, 0.1 + 0.2, 0.5 + 2e-16, 0.5 + 4e-16, -0.0]
    assert settled(values, 3e-16)[[0, 1, 3, 4, 5, 6]].tolist() == [0.5, 0.3, 0.3, 0.5, 0.5, 0]
    assert np.isnan(settled(values, 3e-16)[2])
    assert settled([], 1.0).tolist() == []


def test_runs_with_equal_hits_tie_and_others_do_not():
    hits = list(product(range(11), repeat=3))
    means = board_of(hits, 10).means("R@10")
    of_sum: dict[int, set[float]] = {}
    for run, counts in enumerate(hits, start=1):
        of_sum.setdefault(sum(counts), set()).add(means[run])
    # One number for each of the 31 sums, each larger than that of the sum before.
    assert [len(of_sum[number]) for number in range(31)] == [1] * 31
    assert sorted(of_sum, key=lambda number: min(of_sum[number])) == list(range(31))


@given(st.integers(1, 1500), st.integers(1, 50), st.randoms(use_true_random=False))
def test_means_of_up_to_50_hits_over_up_to_1500_queries_compare_as_fractions(queries, total, draw):
    one = [draw.randint(0, total) for _ in range(queries)]
    other = draw.sample(one, queries)
    further = [*other]
    # One hit more or less somewhere is the least real difference.
    further[0] += 1 if further[0] < total else -1
    means = board_of([one, other, further], total).means("R@10")
    assert means[1] == means[2]
    exact = Fraction(sum(further) - sum(one), total * queries)
    assert (means[3] > means[1], means[3] < means[1]) == (exact > 0, exact < 0)


@given(st.lists(st.tuples(*[st.integers(0, 10)] * 2), min_size=1, max_size=40))
def test_a_run_is_ahead_where_it_has_more_hits_alone(pairs):
    first, second = zip(*pairs, strict=True)
    ahead = Fraction(sum(first) - sum(second), 10 * len(pairs))
    assert (least(first, second) > 0, least(first, second) < 0) == (ahead > 0, ahead < 0)


@pytest.mark.parametrize("key", ["R@10", "AP@10", "nDCG@10"])
def test_no_run_stays_ahead_of_one_with_the_same_mean(key):
    measure = parse_measure(key)
    # The same hits at other queries: equal on paper by every measure.
    for hits in product((1, 3, 4, 7, 9), repeat=3):
        for other in ((hits[1], hits[2], hits[0]), (hits[2], hits[1], hits[0])):
            assert least(hits, other, measure) == 0
    assert least((4, 7, 3), (3, 5, 5)) == pytest.approx(1 / 30)


def test_ties_share_a_place_a_bold_figure_and_a_group():
    board = board_of([*EQUAL, (1, 1, 1)], 10)
    means = board.means("R@10")
    assert places(means) == {1: 1, 2: 1, 3: 3}
    assert best_runs("R@10", means) == {1, 2}
    assert groups(board, "R@10") == {1: "a", 2: "a", 3: "a"}
    hidden = summarize({"AP@50": np.array(EQUAL)[:, [0, 1, 2] * 4] / 10})
    assert len(set(hidden.means["AP@50"].tolist())) == 1


def test_equal_means_stay_equal_where_hidden_labels_round_them():
    tenths = np.append(np.arange(39) % 11, 7)
    scores = np.random.default_rng(3).permuted(np.tile(tenths / 10, (200, 1)), axis=1)
    # 0.4675, some just below it: between two tenths of a point.
    lower = [round(mean, 3) == 0.467 for mean in scores.mean(axis=1).tolist()]
    runs = scores[[lower.index(True), lower.index(False)]]
    [mean] = set(summarize({"AP@50": runs}).means["AP@50"].tolist())
    assert mean in (0.467, 0.468)


def test_a_run_with_eight_of_ten_judged_everywhere_has_not_few():
    runs = SimpleNamespace(coverage=lambda split: ["Judged@10"])
    rounded_down = 0
    for queries in range(1, 60):
        board = board_of([[8] * queries, [*[8] * (queries - 1), 7]], 10, measure="Judged@10")
        rounded_down += board.means("Judged@10")[1] < 0.8
        assert _few_judged(SimpleNamespace(split="test"), runs, board) == {2}
    assert rounded_down


def test_ranks_in_what_a_version_changes_are_shared_by_equal_means(monkeypatch):
    pairs = [(query, image, True) for query in (1, 2, 3) for image in range(10)]
    qrels = Qrels.from_pairs([1, 2, 3], pairs)
    queries = {query: query_of(query, split="test") for query in (1, 2, 3)}
    release = SimpleNamespace(queries=queries, qrels_of=lambda task: qrels)
    monkeypatch.setattr(rescoring, "release_data", lambda before: release)
    scored = []
    for number, counts in enumerate([EQUAL[0], (5, 1, 7), EQUAL[1], (9, 9, 9)]):
        values = {key: np.array(counts) / 10 for key in rescoring.MEASURES["full"]}
        old = SimpleNamespace(query_ids=[1, 2, 3], measures=values)
        scored.append((SimpleNamespace(name=f"run {number}"), old, values))
    table = rescoring._table(release, release, "full", "test", scored)
    # 13/30 three times.
    assert [row["rank"] for row in table["runs"]] == [[1, 1], [2, 2], [2, 2], [2, 2]]
    assert len({row["now"][0] for row in table["runs"]}) == 2
    assert table["tau_b"] == pytest.approx(1)


def average_precision(pattern: Sequence[int]) -> Fraction:
    """AP of ranks with a hit, of four relevant images."""
    found, total = 0, Fraction(0)
    for rank, hit in enumerate(pattern, start=1):
        found += hit
        total += Fraction(found * hit, rank)
    return total / 4


def test_average_precision_compares_as_fractions_at_single_queries():
    patterns = [hits for hits in product((0, 1), repeat=9) if 1 <= sum(hits) <= 4]
    exact = np.array([average_precision(hits) for hits in patterns])
    computed = average_precision_at_k(np.array(patterns), [4] * len(patterns), 9)
    equal = sum(one == other for one, other in combinations(exact, 2))
    assert equal > 50
    rounded_apart = 0
    for pair in combinations(range(len(patterns)), 2):
        one, other = pair
        difference = computed[one] - computed[other]
        rounded_apart += exact[one] == exact[other] and difference != 0
        want = "tie" if exact[one] == exact[other] else ("loss", "win")[exact[one] > exact[other]]
        assert verdicts(np.array([difference]), "AP@9")[want] == 1
    assert rounded_apart >= 10


def test_ranks_at_a_query_are_those_of_fractions():
    patterns = [hits for hits in product((0, 1), repeat=7) if 1 <= sum(hits) <= 4]
    exact = [average_precision(hits) for hits in patterns]
    scores = average_precision_at_k(np.array(patterns), [4] * len(patterns), 7).tolist()
    runs = {number: run_values({1: score}, measure="AP@7") for number, score in enumerate(scores)}
    board = make_board(runs, {1: query_of(1, split="test")}, [1], split="test")
    ranks = [int(ranks_among(board, number, "AP@7")[0]) for number in runs]
    assert ranks == [1 + sum(other > one for other in exact) for one in exact]


@pytest.mark.parametrize("measure", [one for one in DEFAULT_MEASURES if one.k], ids=str)
def test_the_margins_are_far_below_what_people_see(measure):
    assert score_margin(measure) <= mean_margin(1500, measure) < 1 / (50 * 1500) / 1e6
    assert score_margin() < 1e-8


def test_differences_of_the_same_size_share_a_rank_in_wilcoxons_test():
    first, second = np.array([3, 7, 9, 2, 8, 1, 6]), np.array([1, 4, 7, 1, 3, 4, 5])
    tenths = significance.wilcoxon_test(first / 10, second / 10)
    assert len(set(np.abs(first / 10 - second / 10).tolist())) > 4
    assert tenths == stats.wilcoxon(first - second).pvalue


def test_what_rounding_alone_sets_apart_is_no_difference_in_any_test():
    first = np.array([0.1 + 0.2, 0.4, 0.7 + 0.1, 0.5])
    second = np.array([0.3, 0.4, 0.8, 0.5])
    assert (first != second).any()
    assert significance.t_test(first, second) == 1
    assert significance.wilcoxon_test(first, second) == 1
    assert significance.randomization_test(first, second) == 1
    # Everywhere by 0.1, which no two doubles here differ by alike.
    more = np.array([0.3, 0.7, 0.9, 0.4])
    assert len({*(more - (more - 0.1)).tolist(), *(more - [0.2, 0.6, 0.8, 0.3]).tolist()}) > 2
    assert significance.t_test(more, [0.2, 0.6, 0.8, 0.3]) == 0


def test_the_exact_randomization_test_counts_flips_as_integers_do():
    random = np.random.default_rng(2)
    for _ in range(30):
        first, second = random.integers(0, 11, (2, 8))
        sums = [abs(np.dot(signs, first - second)) for signs in product((1, -1), repeat=8)]
        exact = np.mean([total >= abs((first - second).sum()) for total in sums])
        assert significance.randomization_test(first / 10, second / 10) == exact


def test_tied_runs_are_tied_in_the_correlation_of_a_pool():
    # Two runs find 4, 7, 2 and 3, 5, 5 of ten; two more are apart from them and from each other.
    hits = [*EQUAL, (9, 9, 9), (1, 1, 1)]
    runs = {
        number: {
            query: Ranking(
                np.array([*range(found), *range(100, 110 - found)]), np.arange(10.0, 0, -1)
            )
            for query, found in enumerate(counts, start=1)
        }
        for number, counts in enumerate(hits)
    }
    pairs = [(query, image, True) for query in (1, 2, 3) for image in range(10)]
    qrels = Qrels.from_pairs([1, 2, 3], pairs)
    tops = {name: {query: np.arange(10) for query in (1, 2, 3)} for name in ("one", "other")}
    bias = pool_bias(runs, qrels, tops, {}, RECALL)
    assert bias.scores[0] == bias.scores[1]
    # Both models found all images, so nothing changes without either.
    assert [model.without.tau for model in bias.models] == [pytest.approx(1)] * 2


def stability(tau: float) -> str:
    """What a pool says where leaving a model out gives such a correlation."""
    part = PartScores({}, 1, tau, None)  # type: ignore[arg-type]
    models = [_model(name, part) for name in ("one", "other")]
    return PoolBias({1: 0.1, 2: 0.2, 3: 0.3}, 1, 1, 0, tuple(models)).sentence


def _model(name: str, part: PartScores) -> Any:
    from evaluation.scoring.bias import ModelBias

    return ModelBias(name, 1, 1, part, part)


def test_a_correlation_of_exactly_95_is_stable_however_it_is_rounded():
    assert "stable" in stability(np.nextafter(0.95, 0))
    assert "depend" in stability(0.9499999)


def test_a_graded_score_does_not_depend_on_the_queries_before_it():
    random = np.random.default_rng(4)
    hits = random.random((300, 60)) < 0.5
    gains = random.integers(1, 5, int(hits.sum()))
    together = graded_expected_reciprocal_rank_at_k(HitRanks.of(hits), gains, 50)
    start = 0
    for row, score in zip(hits, together, strict=True):
        own = gains[start : start + int(row.sum())]
        start += len(own)
        reached, exact = Fraction(1), Fraction(0)
        for rank, gain in zip(np.flatnonzero(row).tolist(), own.tolist(), strict=True):
            satisfies = Fraction(2**gain - 1, 16)
            exact += reached * satisfies / (rank + 1) if rank < 50 else 0
            reached *= 1 - satisfies
        assert abs(Fraction(float(score)) - exact) <= score_error(parse_measure("ERR@50"))
