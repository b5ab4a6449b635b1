"""Intervals, groups and tests of a leaderboard, computed once for a set of scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluation.leaderboard.board import ALL, GROUPINGS, Board, Floats, Subset
from evaluation.leaderboard.selectors import cached
from evaluation.scoring import significance
from evaluation.scoring.hidden_labels import LabelsHidden
from evaluation.scoring.measures import parse_measure
from evaluation.scoring.rounding import score_error

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


def run_intervals(
    board: Board, run: int, measures: Sequence[str], grouping: str
) -> dict[str, list[Interval | None]]:
    """The intervals of one run in every subset of a grouping, by the subset's key, in the order of
    the measures; None over a single query or where the run has no mean."""
    if board.summary is not None:
        return {
            part.key: [intervals(board, measure, part).get(run) for measure in measures]
            for part in board.subsets(grouping)
        }

    def compute() -> dict[str, list[Interval | None]]:
        # All measures at once: to draw the queries takes most of the time.
        scores = np.stack([board.scores_of(run, measure) for measure in measures])
        found = {}
        for part in board.subsets(grouping):
            spans = significance.bootstrap_intervals(scores[:, part.queries]).tolist()
            several = len(part.queries) > 1
            found[part.key] = [
                (low, high) if several and not np.isnan(low) else None for low, high in spans
            ]
        return found

    return cached(compute, "run", board.fingerprint, run, tuple(measures), grouping)


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
        scores, error = board.scores(measure)[rows], score_error(parse_measure(measure))
        tested = significance.groups(scores, error=error) if rows else []
        letters = significance.letters(tested, len(rows))
        return {board.runs[row]: letter for row, letter in zip(rows, letters, strict=True)}

    return cached(compute, "groups", board.fingerprint, measure)


def p_values(board: Board, first: int, second: int, measure: str) -> dict[str, float]:
    """The p-values of two runs' difference by paired tests, uncorrected: "randomization", "t" and
    "wilcoxon"."""
    pair = board.scores_of(first, measure), board.scores_of(second, measure)
    error = score_error(parse_measure(measure))
    return cached(
        lambda: {
            "randomization": significance.randomization_test(*pair, error=error),
            "t": significance.t_test(*pair, error=error),
            "wilcoxon": significance.wilcoxon_test(*pair, error=error),
        },
        *("p values", board.fingerprint, measure, first, second),
    )


def _by_run(board: Board, spans: Floats) -> dict[int, Interval]:
    """The intervals (r, 2) that are known, by run id."""
    of_runs = zip(board.runs, spans.tolist(), strict=False)
    return {run: (low, high) for run, (low, high) in of_runs if not np.isnan(low)}
