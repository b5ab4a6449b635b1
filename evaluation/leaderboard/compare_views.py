"""Two runs beside each other, query by query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.access import require_evaluator
from core.address_choices import chosen, chosen_id, chosen_page
from evaluation.leaderboard import certified, charts, statistics
from evaluation.leaderboard.board import (
    SPLITS,
    TEST,
    VAL,
    Board,
    printed,
    verdicts,
    whole_splits,
)
from evaluation.leaderboard.board_charts import scale_of
from evaluation.leaderboard.choice import read_measure, visible_measure
from evaluation.leaderboard.run_page import image_ids_of, only_by, relevant_ids
from evaluation.leaderboard.selectors import BoardRuns, board_runs, splits_of
from evaluation.runs.models import Run
from evaluation.runs.selectors import NoSnapshot, get_run_for
from evaluation.runs.services import rankings_on
from evaluation.runs.store import RunDamaged
from evaluation.scoring.measures import parse_measure
from evaluation.scoring.rounding import score_error
from evaluation.scoring.significance import settled_differences
from releases.models import Release
from releases.selectors import get_release
from releases.snapshot.snapshot import SnapshotQuery

#: Queries whose images are counted: those at either end of the differences.
COUNTED: Final = 10
QUERIES_ON_A_PAGE: Final = 50
#: Titles of the table of queries, their classes, and how a first press sorts where all are shown.
COLUMNS: Final = (
    ("No.", "numeric", "ascending"),
    ("Query", "", "ascending"),
    *((title, "numeric", "descending") for title in ("First", "Second", "Difference")),
    ("Images", "", ""),
)


@dataclass(frozen=True, slots=True)
class QueryRow:
    """Two runs at one query."""

    query: SnapshotQuery
    first: str
    second: str
    difference: float
    text: str
    """The difference as printed, with its sign."""
    only_first: int | None
    """How many relevant images only the first run found; None where not counted."""
    only_second: int | None


@login_required
@require_safe
def compare_page(request: HttpRequest) -> HttpResponse:
    """Two runs of one task on one release: differences, who wins, and how sure that is."""
    require_evaluator(request.user)
    first = _run(request, "a")
    second = _run(request, "b")
    release, task = _release_and_task(request, first or second)
    context: dict[str, Any] = {"release": release, "task": task, "a": first, "b": second}
    try:
        runs = board_runs(release, task, request.user)
    except NoSnapshot as error:
        return render(request, "evaluation/compare.html", context | {"trouble": str(error)})
    context["runs"] = list(runs.runs.values())
    split, measure = chosen(request.GET, "split", SPLITS), read_measure(request.GET, task)
    seen = visible_measure(runs, split, measure, _splits(runs, first, second))
    context |= seen.context
    if first is not None and second is not None:
        context |= _comparison(request, runs, first, second, seen.split, seen.measure)
    return render(request, "evaluation/compare.html", context)


def _run(request: HttpRequest, name: str) -> Run | None:
    pk = chosen_id(request.GET, name)
    return None if pk is None else get_run_for(request.user, pk)


def _release_and_task(request: HttpRequest, run: Run | None) -> tuple[Release, str]:
    """The release and task of the named run, else those in the address."""
    if run is not None:
        return run.release, run.task
    release = get_release(request.GET.get("release", ""))
    return release, chosen(request.GET, "task", Run.Task.values, Run.Task.FULL)


def _splits(runs: BoardRuns, first: Run | None, second: Run | None) -> dict[str, str]:
    """The splits that both runs hold and the reader may see."""
    held = {VAL, TEST}
    for run in (first, second):
        held &= splits_of(run) if run is not None else held
    return {split: title for split, title in runs.splits.items() if whole_splits(split) <= held}


def _comparison(
    request: HttpRequest, runs: BoardRuns, first: Run, second: Run, split: str, measure: str
) -> dict[str, Any]:
    if (first.release_id, first.task) != (second.release_id, second.task):
        return {"problem": "The two runs are not of the same release and task."}
    if first.pk == second.pk:
        return {"problem": "Choose two different runs."}
    board = runs.board(split)
    if not {first.pk, second.pk} <= set(board.runs):
        return {"problem": "The two runs hold no split in common, or one is not scored yet."}
    if board.summary is not None:
        return _summary_comparison(board, first, second, measure)
    a, b = (board.scores_of(run.pk, measure) for run in (first, second))
    if not len(a) or np.isnan([a, b]).any():
        return {"problem": "There is no query on which both have this measure."}
    means = board.means(measure)
    difference = means[first.pk] - means[second.pk]
    tests = statistics.p_values(board, first.pk, second.pk, measure)
    all_pairs = _pairs(board, first, second, measure)
    ahead, behind = (first, second) if difference >= 0 else (second, first)
    least = certified.least_ahead(board, runs, ahead.pk, behind.pk, measure)
    pairs = chosen_page(Paginator(all_pairs, QUERIES_ON_A_PAGE), request.GET)
    return {
        "pairs": pairs,
        "columns": COLUMNS,
        "counted": COUNTED if any(pair.only_first is not None for pair in pairs) else 0,
        "verdicts": verdicts(a - b, measure),
        "means": [printed(measure, means[run.pk]) for run in (first, second)],
        "difference": _signed(measure, difference),
        "ahead": ahead if difference else None,
        "least": None if least is None else _signed(measure, least),
        "stays": least is not None and least > 0,
        "unknown": certified.missing_on(board, runs, measure),
        "p": {name: _p_text(value) for name, value in tests.items()},
        "charts": charts.differences_charts(
            first.name,
            second.name,
            list(zip(a.tolist(), b.tolist(), strict=True)),
            measure=measure,
            scale=scale_of(measure),
        ),
    }


def _summary_comparison(board: Board, first: Run, second: Run, measure: str) -> dict[str, Any]:
    """What the leaderboard says of two of its runs: the rounded means, and their groups."""
    means, groups = board.means(measure), statistics.groups(board, measure)
    a, b = means[first.pk], means[second.pk]
    return {
        "means": [printed(measure, a), printed(measure, b)],
        "difference": _signed(measure, a - b),
        "groups": [groups.get(run.pk, "") for run in (first, second)],
    }


def _pairs(board: Board, first: Run, second: Run, measure: str) -> list[QueryRow]:
    """Every query, first those where the first run is furthest ahead."""
    a, b = (board.scores_of(run.pk, measure) for run in (first, second))
    differences = settled_differences(a, b, score_error(parse_measure(measure)))
    columns = (a.tolist(), b.tolist(), differences.tolist())
    rows = sorted(zip(board.queries, *columns, strict=True), key=lambda row: -row[3])
    ends = {query.query_id for query, *_ in [*rows[:COUNTED], *rows[-COUNTED:]]}
    only = _exclusive_hits(first, second, ends)
    return [
        QueryRow(
            query=query,
            first=printed(measure, first_score),
            second=printed(measure, second_score),
            difference=difference,
            text=_signed(measure, difference),
            only_first=only.get(query.query_id, (None, None))[0],
            only_second=only.get(query.query_id, (None, None))[1],
        )
        for query, first_score, second_score, difference in rows
    ]


def _exclusive_hits(
    first: Run, second: Run, query_ids: Iterable[int]
) -> dict[int, tuple[int, int]]:
    """How many relevant images each of two runs found that the other missed, by query id; nothing
    where a run has no order."""
    if Run.Kind.RANDOM in (first.kind, second.kind):
        return {}
    try:
        of_runs = tuple(rankings_on(run, first.release) for run in (first, second))
    except RunDamaged:
        return {}
    counts = {}
    for query_id in query_ids:
        a, b = (image_ids_of(rankings, query_id) for rankings in of_runs)
        relevant = relevant_ids(first.release, first.task, query_id)
        counts[query_id] = (len(only_by(a, b, relevant)), len(only_by(b, a, relevant)))
    return counts


def _p_text(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"= {p_value:.3f}"


def _signed(measure: str, difference: float) -> str:
    text = printed(measure, abs(difference))
    if not text.strip("0."):
        return text
    return f"{'−' if difference < 0 else '+'}{text}"
