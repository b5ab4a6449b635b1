"""The charts below a leaderboard's table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from django.utils.safestring import SafeString

from evaluation.leaderboard import charts, statistics
from evaluation.leaderboard.board import CATEGORY, Board
from evaluation.leaderboard.choice import Choice
from evaluation.leaderboard.selectors import BoardRuns
from evaluation.leaderboard.table import Table
from evaluation.runs.computation import gflops_per_query
from evaluation.runs.models import Run
from evaluation.scoring.measures import mean_title, parse_measure
from releases.charts import MOST_SHAPES
from releases.models import Release

#: Runs drawn by category unless others are chosen.
DRAWN_BY_CATEGORY: Final = 3


class Tradeoff(NamedTuple):
    """What a measure is drawn against."""

    title: str
    axis: str
    unit: str
    figure: Callable[[Run, Release], float | None]
    note: str = ""


TRADEOFFS: Final = (
    Tradeoff("Parameters", "Parameters", "millions", lambda run, _: run.parameters),
    Tradeoff(
        "Computation",
        "Computation",
        "GFLOPs a query",
        gflops_per_query,
        "Encoding all images, divided by the number of queries, and a query’s text; a second stage "
        "adds the images that it re-ranks.",
    ),
    Tradeoff("Cost", "Cost of the run", "US dollars", lambda run, _: run.cost),
)


def board_charts(choice: Choice, runs: BoardRuns, table: Table) -> dict[str, Any]:
    """The context of the charts below the table: the means with their intervals,
    measure against parameters, computation and cost, and the means of some runs by category."""
    board = runs.board(choice.split)
    means = board.means(choice.measure)
    drawn = _runs_by_category(choice, table)
    return {
        "interval_chart": _interval_chart(choice, runs, board, means),
        "tradeoffs": [
            plot for each in TRADEOFFS if (plot := _tradeoff_chart(choice, runs, means, each))
        ],
        "categories_chart": _categories_chart(choice, board, drawn),
        "drawn": {run.pk for run in drawn},
        "most_drawn": MOST_SHAPES,
    }


def scale_of(measure: str) -> float:
    """The factor for figures of a measure in charts: 100 where it is shown in percent."""
    return 100.0 if parse_measure(measure).kind.in_percent else 1.0


def _interval_chart(
    choice: Choice, runs: BoardRuns, board: Board, means: Mapping[int, float]
) -> SafeString | None:
    """The mean of every run shown with its interval, the best first; None without any."""
    intervals = statistics.intervals(board, choice.measure)
    rows = [
        charts.Interval(_chart_name(runs.runs[run]), means[run], *intervals[run])
        for run in sorted(means, key=means.__getitem__, reverse=True)
        if run in intervals and choice.shows(runs.runs[run])
    ]
    return charts.interval_chart(rows, **_measure_and_scale(choice)) if rows else None


def _tradeoff_chart(
    choice: Choice, runs: BoardRuns, means: Mapping[int, float], tradeoff: Tradeoff
) -> dict[str, Any] | None:
    """A chart of the measure against a figure of the runs shown, and how many have the figure; None
    for fewer than two."""
    points = [
        charts.Point(
            name=_chart_name(run), x=figure, y=mean, two_stage=run.first_stage_id is not None
        )
        for run, mean in ((runs.runs[pk], mean) for pk, mean in means.items())
        if choice.shows(run) and (figure := tradeoff.figure(run, runs.release)) is not None
    ]
    if len(points) < 2:
        return None
    chart = charts.tradeoff_chart(
        points, x=tradeoff.axis, unit=tradeoff.unit, **_measure_and_scale(choice)
    )
    return {"title": tradeoff.title, "chart": chart, "stated": len(points), "note": tradeoff.note}


def _categories_chart(choice: Choice, board: Board, drawn: list[Run]) -> SafeString | None:
    """The drawn runs' means in each category; None without a run or a category, and where labels
    are hidden."""
    if board.summary is not None or not drawn:
        return None
    parts = board.subsets(CATEGORY)
    means = [board.means(choice.measure, part) for part in parts]
    figures = [
        (part.name, [of_part.get(run.pk) for run in drawn])
        for part, of_part in zip(parts, means, strict=True)
    ]
    names = [_chart_name(run) for run in drawn]
    return (
        charts.categories_chart(names, figures, **_measure_and_scale(choice)) if figures else None
    )


def _runs_by_category(choice: Choice, table: Table) -> list[Run]:
    """The chosen runs, as many as have distinct shapes, or else the first of the table."""
    by_id = {row.run.pk: row.run for row in table.drawable}
    chosen = [by_id[pk] for pk in choice.runs if pk in by_id][:MOST_SHAPES]
    competing = [row.run for row in table.rows if row.place is not None]
    return chosen or competing[:DRAWN_BY_CATEGORY]


def _chart_name(run: Run) -> str:
    """The name of a run in a chart; a best possible re-rank names its first stage."""
    if run.kind == Run.Kind.BEST and run.first_stage is not None:
        return f"Best re-rank of {run.rerank_depth}: {run.first_stage.name}"
    return run.name


def _measure_and_scale(choice: Choice) -> dict[str, Any]:
    """The measure's title and scale in a chart."""
    title = mean_title(choice.measure, choice.task)
    return {"measure": title, "scale": scale_of(choice.measure)}
