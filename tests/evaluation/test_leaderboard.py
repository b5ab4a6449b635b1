"""The leaderboard's tables, with exact numbers on toy data."""

import numpy as np
import pytest

from evaluation.leaderboard import tables as leaderboard
from evaluation.leaderboard.tables import board, measure_columns, subset_columns, subsets, table
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
RUNS = [WHOLE, ONLY_VAL, GAPS]


def of_split(split, runs=RUNS):
    return board(runs, QUERIES, SCORED, split=split)


def columns_of(made, grouping, measure="AP@50"):
    return subset_columns(measure, subsets(made.query_ids, QUERIES, grouping))


def figures(made):
    return [(row.run, [cell.value for cell in row.cells]) for row in made.rows]


def test_a_run_is_shown_for_the_splits_it_holds_and_a_missing_query_counts_0():
    test, val, both = of_split("test"), of_split("val"), of_split("both")
    assert (test.query_ids.tolist(), test.runs) == ([1, 2, 3], (0, 2))
    assert (val.query_ids.tolist(), val.runs) == ([4], (0, 1, 2))
    assert (both.query_ids.tolist(), both.runs) == ([1, 2, 3, 4], (0, 2))
    assert test.of("AP@50").tolist() == [[0.5, 0.25, 0.75], [0.0, 1.0, 0.0]]
    assert val.of("AP@50").tolist() == [[1.0], [0.8], [0.4]]


def test_scores_of_queries_that_the_release_lacks_are_left_out():
    other_version = run_values({1: 0.5, 77: 1.0})
    assert of_split("test", [other_version]).of("AP@50").tolist() == [[0.5, 0, 0]]


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
    made = of_split("test")
    columns = columns_of(made, grouping)
    assert [column.subset.name for column in columns] == names
    assert [column.queries for column in columns] == counts
    shown = table(made, columns, sort="")
    by_run = dict(figures(shown))
    assert [by_run[0], by_run[2]] == [pytest.approx(row) for row in means]


def test_rows_are_sorted_by_any_column_either_way_and_keep_their_places():
    made = of_split("test")
    columns = columns_of(made, "supercategory")
    by_context = table(made, columns, sort="supercategory:Context")
    assert [(row.run, row.place) for row in by_context.rows] == [(2, 1), (0, 2)]
    rising = table(made, columns, sort="supercategory:Context", descending=False)
    assert [(row.run, row.place) for row in rising.rows] == [(0, 2), (2, 1)]
    by_species = table(made, columns, sort="supercategory:Species")
    assert [row.run for row in by_species.rows] == [0, 2]
    assert table(made, columns, sort="unheard of").sort == "supercategory:Context"


def test_the_best_printed_figure_of_a_column_is_marked_and_an_oracle_is_not():
    close = run_values({1: 0.5001, 2: 0.25, 3: 0.75})
    perfect = run_values({1: 1.0, 2: 1.0, 3: 1.0}, oracle=True)
    made = of_split("test", [WHOLE, close, GAPS, perfect])
    shown = table(made, columns_of(made, "all"), sort="all")
    assert [(row.run, row.place, row.cells[0].best) for row in shown.rows] == [
        (3, None, False),
        (1, 1, True),
        (0, 2, True),
        (2, 3, False),
    ]
    alone = of_split("test", [WHOLE])
    assert not table(alone, columns_of(alone, "all"), sort="").rows[0].cells[0].best


def test_equal_runs_share_their_place():
    made = of_split("test", [GAPS, WHOLE, WHOLE])
    shown = table(made, columns_of(made, "all"), sort="")
    assert [(row.run, row.place) for row in shown.rows] == [(1, 1), (2, 1), (0, 3)]


def test_a_run_without_the_measure_has_no_figure_and_comes_last_either_way():
    other = run_values({1: 1.0}, measure="nDCG@50")
    made = of_split("test", [other, WHOLE, GAPS])
    columns = measure_columns(["AP@50", "nDCG@50"], subsets(made.query_ids, QUERIES, "all")[0])
    for descending in (True, False):
        shown = table(made, columns, sort="AP@50", descending=descending)
        assert (shown.rows[-1].run, shown.rows[-1].place) == (0, None)
        assert [cell.value for cell in shown.rows[-1].cells] == [None, pytest.approx(1 / 3)]
        assert shown.rows[0].cells[1].value is None


def test_a_split_without_queries_or_runs_gives_a_table_without_figures():
    queries = {1: QUERIES[1]}
    made = board([WHOLE], queries, [1], split="val")
    columns = columns_of(made, "all")
    shown = table(made, columns, sort="")
    assert figures(shown) == [(0, [None])]
    assert (columns[0].queries, shown.rows[0].place) == (0, None)
    nobody = board([], queries, [1], split="test")
    assert table(nobody, columns_of(nobody, "all"), sort="").rows == ()


def test_figures_are_printed_as_in_the_paper():
    printed = leaderboard.printed
    assert (printed("AP@50", 0.3334), printed("RR@50", 0.6875)) == ("33.3", "0.69")
    assert printed("AP@50", None) == "–"


def test_ranks_and_verdicts_against_other_runs():
    values = np.array([[0.5, 1.0], [0.5, 0.0], [0.2, np.nan]])
    assert leaderboard.ranks_among(values, ()).tolist() == [[1, 1], [1, 2], [3, 0]]
    # An oracle has no rank and takes nobody's.
    assert leaderboard.ranks_among(values, {0}).tolist() == [[0, 0], [1, 1], [2, 0]]
    differences = np.array([0.3, -0.2, 0.0, 1e-12, 0.1])
    assert leaderboard.verdicts(differences) == {"win": 2, "tie": 2, "loss": 1}
