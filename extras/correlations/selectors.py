"""Correlations on a release, which the page and the API show."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from evaluation.leaderboard.board import Board
from evaluation.leaderboard.selectors import BoardRuns, cached, version_board
from evaluation.runs.models import Run
from evaluation.scoring.hidden_labels import HALVES
from evaluation.scoring.measures import HEADLINES, mean_title
from extras.correlations.matrix import Correlations, correlations
from releases.access import other_versions

#: Those of ECCV Caption's Table 5 that there are here, by their names here: what the paper calls
#: R@k, whether a positive is among the first k (its appendix E), is hit@k.
OF_TABLE_5: Final = ("Success@1", "Success@5", "Success@10", "Rprec", "AP@R")
#: Unless others are chosen; R@k is recall, which the paper doesn't have.
USUAL: Final = {
    Run.Task.FULL: (*HEADLINES["full"], *OF_TABLE_5, "R@1", "R@5", "R@10"),
    Run.Task.RERANK: (*HEADLINES["rerank"], *OF_TABLE_5, "R@5", "R@10"),
}


def labeled_splits(runs: BoardRuns) -> dict[str, str]:
    """The splits whose labels the reader sees, with their titles."""
    return {
        split: title
        for split, title in runs.splits.items()
        if split not in HALVES and not runs.labels_hidden(split)
    }


def columns_of(runs: BoardRuns, named: Sequence[str]) -> list[str]:
    """The keys of the named measures that a run has, by default of the usual ones."""
    return [key for key in named or USUAL[Run.Task(runs.task)] if key in runs.measures]


def between_measures(runs: BoardRuns, split: str, keys: Sequence[str]) -> Correlations:
    """Of the runs' means by each measure. LabelsHidden."""
    board = runs.board(split)
    return cached(
        lambda: correlations({mean_title(key, runs.task): _means(board, key) for key in keys}),
        *("correlations", board.fingerprint, keys),
    )


def between_versions(runs: BoardRuns, split: str, measure: str, user: Any) -> Correlations:
    """Of the measure on this version and on each other whose labels the user may see, over the runs
    scored on both. LabelsHidden."""
    boards = {runs.release.version: runs.board(split)} | {
        version.version: version_board(version, runs.runs, split)
        for version in other_versions(user, runs.release, split)
    }
    return correlations({f"v{name}": _means(boards[name], measure) for name in sorted(boards)})


def _means(board: Board, measure: str) -> dict[Hashable, float | None]:
    """Of the runs that compete, by id."""
    means = board.means(measure)
    return {run: means.get(run) for run in board.competitors}
