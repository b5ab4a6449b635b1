"""Intervals, groups and tests of a leaderboard, computed once for a set of scores."""

from __future__ import annotations

import numpy as np

from evaluation.leaderboard.selectors import BoardRuns, cached
from evaluation.leaderboard.tables import ALL, GROUPINGS, Board, Column, Floats, subsets
from evaluation.scoring import significance
from evaluation.scoring.hidden import LabelsHidden, Summary


def intervals(runs: BoardRuns, board: Board, column: Column) -> Floats:
    """(runs, 2) the 95 % interval of each run's mean in a column; NaN without queries.
    LabelsHidden."""
    if board.summary is not None:
        return _of_summary(board.summary, column, len(board.runs))
    return cached(
        lambda: significance.bootstrap_intervals(
            board.of(column.measure)[:, column.subset.queries]
        ),
        *("intervals", runs.fingerprint, board.split, column.measure, column.subset.key),
    )


def every_interval(runs: BoardRuns, board: Board, measure: str) -> dict[str, Floats]:
    """The same of every subset of every grouping, by the subset's key; where labels are hidden,
    of all queries together alone."""
    if board.summary is not None:
        known = board.summary.intervals.get(measure)
        return {} if known is None else {ALL: known}

    def compute() -> dict[str, Floats]:
        return {
            part.key: significance.bootstrap_intervals(board.of(measure)[:, part.queries])
            for grouping in GROUPINGS
            for part in subsets(board.query_ids, runs.queries, grouping)
        }

    # As one, since memory holds a few hundred things.
    return cached(compute, "every interval", runs.fingerprint, board.split, measure)


def interval(board: Board, row: int, column: Column) -> tuple[float, float]:
    """The same of one run alone."""
    if board.summary is not None:
        low, high = _of_summary(board.summary, column, len(board.runs))[row]
        return float(low), float(high)
    values = board.of(column.measure)[row, column.subset.queries]
    low, high = significance.bootstrap_intervals(values)
    return float(low), float(high)


def groups(runs: BoardRuns, board: Board, measure: str) -> dict[int, str]:
    """Letters of each row of the board that competes, by mean over all its queries: rows that share
    a letter don't differ (paired randomization test, Holm's correction for all pairs, 5 %).
    """
    if board.summary is not None:
        return dict(board.summary.groups.get(measure, {}))

    def compute() -> dict[int, str]:
        values = board.of(measure)
        rows = [
            row
            for row in range(len(values))
            if row not in board.oracles and not np.isnan(values[row]).any()
        ]
        if not values.shape[1]:
            return {}
        found = significance.letters(significance.groups(values[rows]), len(rows))
        return dict(zip(rows, found, strict=True))

    return cached(compute, "groups", runs.fingerprint, board.split, measure)


def p_values(
    runs: BoardRuns, board: Board, first: int, second: int, measure: str
) -> dict[str, float]:
    """The p-values of two rows' difference by paired tests, uncorrected: "randomization", "t" and
    "wilcoxon"."""
    values = board.of(measure)[[first, second]]
    return cached(
        lambda: {
            "randomization": significance.randomization_test(*values),
            "t": significance.t_test(*values),
            "wilcoxon": significance.wilcoxon_test(*values),
        },
        *("p values", runs.fingerprint, board.split, measure, first, second),
    )


def _of_summary(summary: Summary, column: Column, runs: int) -> Floats:
    if column.subset.grouping != ALL:
        raise LabelsHidden
    return summary.intervals.get(column.measure, np.full((runs, 2), np.nan))
