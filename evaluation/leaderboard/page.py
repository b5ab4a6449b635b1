"""What the leaderboard's page shows for a choice: rows, headers and charts, as printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from django.http import Http404
from django.utils.safestring import SafeString

from evaluation.leaderboard import charts, statistics
from evaluation.leaderboard.choice import MEASURES, Choice, columns_of
from evaluation.leaderboard.selectors import FEWEST_JUDGED, JUDGED, BoardRuns, version_board
from evaluation.leaderboard.tables import (
    ALL,
    CATEGORY,
    Board,
    Cell,
    Column,
    Floats,
    Subset,
    column_means,
    measure_columns,
    printed,
    subset_columns,
    subsets,
    table,
)
from evaluation.runs.models import Run
from evaluation.scoring.measures import mean_title, parse_measure
from releases.charts import MOST_SHAPES
from releases.models import Release

#: Runs drawn by category unless others are chosen.
DRAWN_BY_CATEGORY: Final = 3
#: What rows can be sorted by besides figures.
LINE_KEYS: Final = {"name": "Method", "parameters": "Params (M)"}


@dataclass(frozen=True, slots=True)
class Header:
    """A column's head."""

    key: str
    title: str
    queries: int | None
    """Over how many queries it averages; None where the whole table says so."""
    sorted: str
    """"ascending", "descending", or empty."""
    address: str
    """Of the page sorted by it; a second time the other way."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row as printed."""

    run: Run
    place: int | None
    figures: tuple[Cell, ...]
    groups: str
    """Letters: runs that share one don't differ significantly."""
    beside: str
    """The mean on another version; empty where the run is not scored there."""
    few_judged: bool = False
    """Whether fewer than FEWEST_JUDGED of its first 10 images were judged, over all queries."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A table as printed."""

    title: str
    headers: tuple[Header, ...]
    line_headers: dict[str, Header]
    """Of `LINE_KEYS`."""
    families: tuple[tuple[Line, ...], ...]
    """The rows; where two-stage runs stand under their first stage, that run with those under it,
    else all as one."""
    queries: int
    runs: int
    bounds: Shown | None = None
    """The best possible re-ranks, which compete with no run: with the same columns and sorted the
    same way. None without any."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """All rows in their order."""
        return tuple(line for family in self.families for line in family)

    @property
    def drawable(self) -> tuple[Line, ...]:
        """All rows, then those of the bounds."""
        return self.lines + (self.bounds.lines if self.bounds else ())

    @property
    def few_judged(self) -> bool:
        """Whether a row is marked."""
        return any(line.few_judged for line in self.drawable)

    @property
    def covered(self) -> bool:
        """Whether columns say how far the labels cover the runs' images."""
        return any(header.key == JUDGED for header in self.headers)


def scale_of(measure: str) -> float:
    """What figures of a measure are multiplied by where they are drawn."""
    return 100.0 if parse_measure(measure).kind.in_percent else 1.0


def drawn_name(run: Run) -> str:
    """What a run is called where nothing else shows what it re-ranks."""
    if run.kind == Run.Kind.BEST and run.first_stage is not None:
        return f"Best re-rank of {run.rerank_depth}: {run.first_stage.name}"
    return run.name


def shown_table(choice: Choice, runs: BoardRuns, beside: Release | None = None) -> Shown:
    """The chosen table, with intervals, with groups by the chosen measure, and with its bounds."""
    made = runs.board(choice.split)
    columns = columns_of(choice, runs, made)
    sort = choice.sort or choice.measure
    if choice.sort and choice.sort not in {*LINE_KEYS, *(column.key for column in columns)}:
        raise Http404("There is no such column.")
    figures = table(made, columns, sort=sort, descending=choice.descending)
    places = {run: row for row, run in enumerate(made.runs)}
    letters = statistics.groups(runs, made, choice.measure)
    spans = [
        statistics.intervals(runs, made, column) if _has_interval(choice, runs, column) else None
        for column in columns
    ]
    others = _beside(choice, runs, beside) if beside is not None else {}
    few_judged = _few_judged(choice, runs, made)
    lines = [
        Line(
            run=runs.runs[row.run],
            place=row.place,
            figures=tuple(
                replace(cell, interval=_span(column.measure, span, places[row.run], cell.value))
                for cell, column, span in zip(row.cells, columns, spans, strict=True)
            ),
            groups=letters.get(places[row.run], ""),
            beside=others.get(runs.runs[row.run].pk, ""),
            few_judged=row.run in few_judged,
        )
        for row in figures.rows
    ]
    sorted_by = figures.sort
    if choice.sort in LINE_KEYS:
        sorted_by = choice.sort
        lines = _by_line_key(lines, sorted_by, choice.descending)
    oracles = {runs.runs[made.runs[row]].pk for row in made.oracles}
    competing = [line for line in lines if line.run.pk not in oracles]
    bounds = tuple(line for line in lines if line.run.pk in oracles)
    shown = Shown(
        title=choice.title,
        headers=tuple(_header(choice, column, sorted_by) for column in columns),
        line_headers={
            key: _line_header(choice, key, title, sorted_by) for key, title in LINE_KEYS.items()
        },
        families=_families(competing) if choice.under else (tuple(competing),),
        queries=len(made.query_ids),
        runs=len(competing),
    )
    if not bounds:
        return shown
    below = replace(shown, title="Best possible re-ranks", families=(bounds,), runs=len(bounds))
    return replace(shown, bounds=below)


def board_charts(choice: Choice, runs: BoardRuns, shown: Shown) -> dict[str, Any]:
    """The charts below the table, as their templates need them: the means with their intervals,
    measure against parameters and against cost, and the means of some runs by category."""
    made = runs.board(choice.split)
    column = _whole_column(choice, runs, made)
    means = column_means(made, column)
    of_runs = [
        (runs.runs[place], float(mean)) for place, mean in zip(made.runs, means, strict=True)
    ]
    drawn = _drawn_by_category(choice, shown)
    return {
        "interval_chart": _interval_chart(
            choice, of_runs, statistics.intervals(runs, made, column)
        ),
        "tradeoffs": [_tradeoff(choice, of_runs, shown, what) for what in _TRADEOFFS],
        "categories_chart": _categories_chart(choice, runs, made, drawn),
        "drawn": {run.pk for run in drawn},
        "most_drawn": MOST_SHAPES,
    }


#: Fields of a run that a measure is drawn against: title and unit.
_TRADEOFFS: Final = {"parameters": ("Parameters", "millions"), "cost": ("Cost", "US dollars")}


def _interval_chart(
    choice: Choice, means: Sequence[tuple[Run, float]], spans: Floats
) -> SafeString | None:
    """Every run's mean with its interval, the best first; None without any."""
    known = [row for row, (_, mean) in enumerate(means) if not np.isnan(mean)]
    known.sort(key=lambda row: -means[row][1])
    rows = [charts.Interval(drawn_name(means[row][0]), means[row][1], *spans[row]) for row in known]
    return charts.interval_chart(rows, **_drawn_measure(choice)) if rows else None


def _tradeoff(
    choice: Choice, means: Sequence[tuple[Run, float]], shown: Shown, field: str
) -> dict[str, Any]:
    """The measure against a field of the runs, and how many state that; no chart of fewer than
    two."""
    title, unit = _TRADEOFFS[field]
    places = {line.run.pk: line.place for line in shown.lines}
    points = [
        charts.Point(
            name=drawn_name(run),
            x=getattr(run, field),
            y=mean,
            place=places.get(run.pk),
            two_stage=run.first_stage_id is not None,
        )
        for run, mean in means
        if getattr(run, field) is not None and not np.isnan(mean)
    ]
    axis = "Cost of the run" if field == "cost" else title
    chart = None
    if len(points) > 1:
        chart = charts.tradeoff_chart(points, x=axis, unit=unit, **_drawn_measure(choice))
    return {"title": title, "chart": chart, "stated": len(points)}


def _categories_chart(
    choice: Choice, runs: BoardRuns, made: Board, drawn: Sequence[Run]
) -> SafeString | None:
    """The drawn runs' means in each category; None without a run or a category, and where labels
    are hidden."""
    if made.summary is not None:
        return None
    rows = _rows_of(made, runs, drawn)
    parts = subsets(made.query_ids, runs.queries, CATEGORY)
    if not rows or not parts:
        return None
    means = [column_means(made, one)[rows] for one in subset_columns(choice.measure, parts)]
    figures = [
        (part.name, [None if np.isnan(value) else float(value) for value in values])
        for part, values in zip(parts, means, strict=True)
    ]
    return charts.categories_chart(
        [drawn_name(run) for run in drawn], figures, **_drawn_measure(choice)
    )


def _drawn_by_category(choice: Choice, shown: Shown) -> list[Run]:
    """The chosen runs, as many as have distinct shapes, or else the first of the table."""
    by_id = {line.run.pk: line.run for line in shown.drawable}
    chosen = [by_id[pk] for pk in choice.runs if pk in by_id][:MOST_SHAPES]
    competing = [line.run for line in shown.lines if line.place is not None]
    return chosen or competing[:DRAWN_BY_CATEGORY]


def _drawn_measure(choice: Choice) -> dict[str, Any]:
    """The measure's title and scale in a chart."""
    title = mean_title(choice.measure, choice.task)
    return {"measure": title, "scale": scale_of(choice.measure)}


def _has_interval(choice: Choice, runs: BoardRuns, column: Column) -> bool:
    if choice.view not in (ALL, MEASURES):
        return True
    return column.measure in (choice.measure, *runs.main_measures(choice.split))


def _few_judged(choice: Choice, runs: BoardRuns, made: Board) -> set[int]:
    """The positions, among the runs of the board, of those that are marked."""
    if JUDGED not in runs.coverage(choice.split) or not len(made.query_ids):
        return set()
    shares = made.of(JUDGED).mean(axis=1)
    return {run for run, share in zip(made.runs, shares, strict=True) if share < FEWEST_JUDGED}


def _header(choice: Choice, column: Column, sorted_by: str) -> Header:
    by_measure = column.key == column.measure
    return _line_header(
        choice,
        column.key,
        mean_title(column.measure, choice.task) if by_measure else column.subset.name,
        sorted_by,
        queries=None if by_measure else column.queries,
    )


def _line_header(
    choice: Choice, key: str, title: str, sorted_by: str, queries: int | None = None
) -> Header:
    is_sorted = key == sorted_by
    # Figures begin with the highest, names with A.
    first = key != "name"
    return Header(
        key=key,
        title=title,
        queries=queries,
        sorted=("descending" if choice.descending else "ascending") if is_sorted else "",
        address=choice.address(sort=key, descending=not choice.descending if is_sorted else first),
    )


def _families(lines: list[Line]) -> tuple[tuple[Line, ...], ...]:
    """Each first stage with the runs that re-rank it, in the order of the lines; a two-stage run
    whose first stage isn't shown is listed alone."""
    shown = {line.run.pk for line in lines}
    under: dict[int, list[Line]] = {}
    heads = []
    for line in lines:
        first = line.run.first_stage_id
        if first in shown and first is not None:
            under.setdefault(first, []).append(line)
        else:
            heads.append(line)
    return tuple((head, *_below(head, under)) for head in heads)


def _below(head: Line, under: dict[int, list[Line]]) -> list[Line]:
    """What re-ranks a run, and what re-ranks that."""
    return [one for line in under.get(head.run.pk, ()) for one in (line, *_below(line, under))]


def _by_line_key(lines: list[Line], key: str, descending: bool) -> list[Line]:
    if key == "name":
        return sorted(lines, key=lambda line: line.run.name.casefold(), reverse=descending)
    known = [line for line in lines if line.run.parameters is not None]
    rest = [line for line in lines if line.run.parameters is None]
    return sorted(known, key=lambda line: line.run.parameters or 0, reverse=descending) + rest


def _span(measure: str, spans: Any, row: int, value: float | None) -> str:
    if spans is None or value is None or np.isnan(spans[row]).any():
        return ""
    low, high = (printed(measure, float(edge)) for edge in spans[row])
    return f"{low}–{high}"


def _whole_column(choice: Choice, runs: BoardRuns, made: Board) -> Column:
    whole: Subset = subsets(made.query_ids, runs.queries, "all")[0]
    return measure_columns([choice.measure], whole)[0]


def _rows_of(made: Board, runs: BoardRuns, drawn: Sequence[Run]) -> list[int]:
    where = {runs.runs[place].pk: row for row, place in enumerate(made.runs)}
    return [where[run.pk] for run in drawn if run.pk in where]


def _beside(choice: Choice, runs: BoardRuns, other: Release) -> dict[int, str]:
    """Each run's mean in the chosen measure on another version, over all of its queries."""
    ids, made = version_board(other, runs.runs, choice.split)
    means = made.of(choice.measure).mean(axis=1) if len(made.query_ids) else [np.nan] * len(ids)
    found = zip(ids, means, strict=True)
    return {pk: printed(choice.measure, mean) for pk, mean in found if not np.isnan(mean)}
