"""Intervals, groups and tests of a leaderboard, computed once for a set of scores."""

from __future__ import annotations

import numpy as np

from evaluation.leaderboard.board import ALL, GROUPINGS, Board, Floats, Subset
from evaluation.leaderboard.selectors import cached
from evaluation.scoring import significance
from evaluation.scoring.hidden_labels import LabelsHidden

Interval = tuple[float, float]


def intervals(board: Board, measure: str, subset: Subset | None = None) -> dict[int, Interval]:
    """Run id -> the 95 % interval of its mean over some of the queries, by default all, of the runs
    that have one; none over a single query. LabelsHidden."""
    subset = board.whole if subset is None else subset
    if board.summary is not None:
        if subset.grouping != ALL:
            raise LabelsHidden
        return _by_run(board, board.summary.intervals.get(measure, np.empty((0, 2))))
    if len(subset.queries) < 2:
        return {}
    return cached(
        lambda: _by_run(
            board, significance.bootstrap_intervals(board.scores(measure)[:, subset.queries])
        ),
        *("intervals", board.fingerprint, measure, subset.key),
    )


def every_interval(board: Board, measure: str) -> dict[str, dict[int, Interval]]:
    """The intervals of every subset of every grouping that has two queries, by the subset's key;
    where labels are hidden, only those over all queries."""
    if board.summary is not None:
        return {ALL: intervals(board, measure)}

    def compute() -> dict[str, dict[int, Interval]]:
        scores = board.scores(measure)
        return {
            part.key: _by_run(board, significance.bootstrap_intervals(scores[:, part.queries]))
            for grouping in GROUPINGS
            for part in board.subsets(grouping)
            if len(part.queries) > 1
        }

    # One entry for all, since the cache holds a few hundred entries.
    return cached(compute, "every interval", board.fingerprint, measure)


def interval(board: Board, run: int, measure: str, subset: Subset) -> Interval | None:
    """The interval of one run that has a mean over the subset; None over a single query."""
    if len(subset.queries) < 2:
        return None
    if board.summary is not None:
        return intervals(board, measure, subset)[run]
    low, high = significance.bootstrap_intervals(board.scores_of(run, measure)[subset.queries])
    return float(low), float(high)


def groups(board: Board, measure: str) -> dict[int, str]:
    """Letters of each run that competes, by mean over all queries: runs that share a letter don't
    differ (paired randomization test, Holm's correction for all pairs, 5 %).
    """
    if board.summary is not None:
        letters = board.summary.groups.get(measure, {})
        return {board.runs[row]: letter for row, letter in letters.items()}

    def compute() -> dict[int, str]:
        competing = board.means(measure).keys() - board.oracles
        rows = [row for row, run in enumerate(board.runs) if run in competing]
        tested = significance.groups(board.scores(measure)[rows]) if rows else []
        letters = significance.letters(tested, len(rows))
        return {board.runs[row]: letter for row, letter in zip(rows, letters, strict=True)}

    return cached(compute, "groups", board.fingerprint, measure)


def p_values(board: Board, first: int, second: int, measure: str) -> dict[str, float]:
    """The p-values of two runs' difference by paired tests, uncorrected: "randomization", "t" and
    "wilcoxon"."""
    pair = board.scores_of(first, measure), board.scores_of(second, measure)
    return cached(
        lambda: {
            "randomization": significance.randomization_test(*pair),
            "t": significance.t_test(*pair),
            "wilcoxon": significance.wilcoxon_test(*pair),
        },
        *("p values", board.fingerprint, measure, first, second),
    )


def _by_run(board: Board, spans: Floats) -> dict[int, Interval]:
    """The intervals (r, 2) that are known, by run id."""
    of_runs = zip(board.runs, spans.tolist(), strict=False)
    return {run: (low, high) for run, (low, high) in of_runs if not np.isnan(low)}
