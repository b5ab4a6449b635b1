"""Medians, percentiles and tables, on numbers small enough to check by hand."""

from __future__ import annotations

import pytest

from bench.figures import Row, grid, percentile, share_under, table, timing


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(number) for number in range(20, 0, -1)]
    assert percentile(values, 0.5) == 10
    assert percentile(values, 0.95) == 19
    assert percentile(values, 1) == 20
    assert percentile([7.0], 0.95) == 7


def test_nothing_measured_is_no_figure() -> None:
    with pytest.raises(ValueError, match="nothing to measure"):
        percentile([], 0.5)


def test_a_share_counts_what_is_below_the_limit() -> None:
    assert share_under([0.01, 0.02, 0.05, 0.09], 0.05) == 0.5


def test_a_timing_stands_beside_a_bare_request() -> None:
    row = timing("a step", [0.010, 0.020, 0.030], bare=0.004, remark="of three")
    assert row == Row("a step", "20.0 ms", "30.0 ms", "5.0", "of three")


def test_the_table_is_markdown_with_as_many_cells_in_each_line() -> None:
    lines = table([Row("a", "1 ms", remark="x | y"), Row("longer", "2 ms")]).splitlines()
    assert lines[0].startswith("| What ")
    assert set(lines[1]) == {"|", "-"}
    assert {line.count("|") for line in lines} == {6}
    assert "x / y" in lines[2]


def test_a_grid_has_any_columns_and_no_ragged_row() -> None:
    lines = grid(["Size", "Ours"], [["200,000", "1 | 2"], ["1", "3"]]).splitlines()
    assert lines[0] == "| Size    | Ours  |"
    assert lines[2] == "| 200,000 | 1 / 2 |"
    assert {len(line) for line in lines} == {len(lines[0])}
    with pytest.raises(ValueError, match="2 cells"):
        grid(["Size", "Ours"], [["1"]])
