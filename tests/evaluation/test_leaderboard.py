"""The leaderboard's tables, with exact numbers on toy data."""

import numpy as np
import pytest

from evaluation.leaderboard.board import (
    best_runs,
    make_board,
    places,
    printed,
    ranks_among,
    verdicts,
)
from tests.evaluation.board import query_of, run_values

pytestmark = pytest.mark.pure

QUERIES = {
    1: query_of(1, "Human Impact", iconic_group="Birds"),
    2: query_of(2, "Human Impact", iconic_group="", scientific_terms=True),
    3: query_of(3, "Species ID", iconic_group="Mammals"),
    4: query_of(4, "Life Cycle and Development", iconic_group="Birds", split="val"),
    5: query_of(5, "Species ID", iconic_group="Birds"),
}
# Query 5 has no relevant image, so that nothing is scored on it.
SCORED = [1, 2, 3, 4]
WHOLE = run_values({1: 0.5, 2: 0.25, 3: 0.75, 4: 1.0})
ONLY_VAL = run_values({4: 0.8}, "val")
GAPS = run_values({2: 1.0, 4: 0.4})
#: By run id.
RUNS = {10: WHOLE, 20: ONLY_VAL, 30: GAPS}


def of_split(split, runs=RUNS):
    return make_board(runs, QUERIES, SCORED, split=split)


def test_a_run_is_shown_for_the_splits_it_holds_and_a_missing_query_counts_0():
    test, val, both = of_split("test"), of_split("val"), of_split("both")
    assert (test.query_ids.tolist(), test.runs) == ([1, 2, 3], (10, 30))
    assert (val.query_ids.tolist(), val.runs) == ([4], (10, 20, 30))
    assert (both.query_ids.tolist(), both.runs) == ([1, 2, 3, 4], (10, 30))
    assert test.scores("AP@50").tolist() == [[0.5, 0.25, 0.75], [0.0, 1.0, 0.0]]
    assert val.scores("AP@50").tolist() == [[1.0], [0.8], [0.4]]
    assert test.scores_of(30, "AP@50").tolist() == [0.0, 1.0, 0.0]


def test_scores_of_queries_that_the_release_lacks_are_left_out():
    other_version = run_values({1: 0.5, 77: 1.0})
    assert of_split("test", {1: other_version}).scores("AP@50").tolist() == [[0.5, 0, 0]]


@pytest.mark.parametrize(
    ("grouping", "names", "counts", "means"),
    [
        ("all", ["All queries"], [3], [[0.5], [1 / 3]]),
        ("supercategory", ["Context", "Species"], [2, 1], [[0.375, 0.75], [0.5, 0.0]]),
        (
            "iconic_group",
            ["Birds", "Mammals", "No group"],
            [1, 1, 1],
            [[0.5, 0.75, 0.25], [0.0, 0.0, 1.0]],
        ),
        (
            "terms",
            ["With scientific terms", "Without scientific terms"],
            [1, 2],
            [[0.25, 0.625], [1.0, 0.0]],
        ),
    ],
)
def test_each_grouping_gives_the_means_of_its_parts(grouping, names, counts, means):
    board = of_split("test")
    parts = board.subsets(grouping)
    assert [part.name for part in parts] == names
    assert [len(part.queries) for part in parts] == counts
    of_parts = [board.means("AP@50", part) for part in parts]
    for run, expected in zip((10, 30), means, strict=True):
        assert [of_part[run] for of_part in of_parts] == pytest.approx(expected)


def test_equal_runs_share_their_place():
    assert places({10: 0.2, 20: 0.5, 30: 0.5}) == {20: 1, 30: 1, 10: 3}
    assert places({}) == {}


def test_the_best_printed_mean_is_marked_where_more_is_better_and_two_compete():
    assert best_runs("AP@50", {10: 0.5, 20: 0.5001, 30: 0.4}) == {10, 20}
    assert best_runs("AP@50", {10: 0.5}) == set()
    assert best_runs("Judged@10", {10: 0.5, 20: 0.4}) == set()


def test_an_oracle_does_not_compete():
    board = of_split("test", {10: WHOLE, 20: run_values({1: 1.0}, oracle=True)})
    assert (board.runs, board.competitors, board.oracles) == ((10, 20), (10,), {20})


def test_a_run_without_the_measure_has_no_mean():
    other = run_values({1: 1.0}, measure="nDCG@50")
    board = of_split("test", {10: other, 20: WHOLE})
    assert board.means("AP@50") == {20: pytest.approx(0.5)}
    assert board.means("nDCG@50") == {10: pytest.approx(1 / 3)}
    assert board.means("P@1") == {}
    assert np.isnan(board.scores_of(10, "AP@50")).all()


def test_a_split_without_queries_or_runs_has_no_means():
    queries = {1: QUERIES[1]}
    board = make_board({10: WHOLE}, queries, [1], split="val")
    assert (board.runs, len(board.whole.queries), board.means("AP@50")) == ((10,), 0, {})
    nobody = make_board({}, queries, [1], split="test")
    assert (nobody.runs, nobody.means("AP@50")) == ((), {})


def test_figures_are_printed_as_in_the_paper():
    assert (printed("AP@50", 0.3334), printed("RR@50", 0.6875)) == ("33.3", "0.69")
    assert printed("AP@50", None) == "–"


def test_ranks_and_verdicts_against_other_runs():
    runs = {
        10: run_values({1: 0.5, 2: 1.0, 3: 0.1}),
        20: run_values({1: 0.5, 3: 0.1}),
        30: run_values({1: 0.2}, measure="P@1"),
    }

    def ranks(**of_run):
        board = of_split("test", {**runs, **{int(run[1:]): one for run, one in of_run.items()}})
        return [ranks_among(board, run, "AP@50").tolist() for run in board.runs]

    assert ranks() == [[1, 1, 1], [1, 2, 1], [0, 0, 0]]
    # An oracle has no rank and takes nobody's.
    oracle = run_values({1: 0.5, 2: 1.0, 3: 0.1}, oracle=True)
    assert ranks(_10=oracle) == [[0, 0, 0], [1, 1, 1], [0, 0, 0]]
    differences = np.array([0.3, -0.2, 0.0, 1e-12, 0.1])
    assert verdicts(differences) == {"win": 2, "tie": 2, "loss": 1}
