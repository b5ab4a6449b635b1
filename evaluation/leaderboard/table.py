"""The table of a leaderboard for a choice, as printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from django.http import Http404

from evaluation.leaderboard import certified, statistics
from evaluation.leaderboard.board import (
    ALL,
    Board,
    Subset,
    best_runs,
    places,
    printed,
    printed_span,
)
from evaluation.leaderboard.certified import Unknown
from evaluation.leaderboard.choice import MEASURES, Choice, traits
from evaluation.leaderboard.marks import Mark, marks_of
from evaluation.leaderboard.selectors import FEWEST_JUDGED, JUDGED, BoardRuns, version_board
from evaluation.runs.models import Run
from evaluation.scoring.hidden_labels import PRIVATE, PUBLIC
from evaluation.scoring.measures import mean_title, parse_measure
from evaluation.scoring.rounding import mean_margin
from releases.models import Release

#: Columns besides the figures that sort the rows.
ROW_KEYS: Final = {"name": "Method", "parameters": "Params (M)"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean as printed."""

    text: str
    value: float | None
    """None where there is nothing to average."""
    interval: str = ""
    """"28.1–38.0"; empty where there is none."""
    missing: str = ""
    """"42.9–44.1": with what labels may miss; empty where that isn't bounded."""
    best: bool = False
    """The column's highest as printed; of several equal ones, all."""


@dataclass(frozen=True, slots=True)
class Header:
    """A column's head."""

    key: str
    title: str
    queries: int | None
    """How many queries it averages over; None where that is the table's number."""
    sorted: str
    """"ascending", "descending", or empty."""
    address: str
    """The address of the page sorted by it, or in the other direction where it is sorted so."""


@dataclass(frozen=True, slots=True)
class Row:
    """A run's row."""

    run: Run
    place: int | None
    """From 1 in the order of the sorted figures, equal ones sharing theirs; None for a best
    possible re-rank and where there is no figure."""
    figures: tuple[Figure, ...]
    groups: str
    """Letters: runs that share a letter don't differ significantly."""
    beside: str
    """The mean on another version; empty where the run is not scored there."""
    ahead_of: int | None
    """The next place, where its run can't pass this one whatever labels miss; else None."""
    public_place: int | None
    """Its place on the public half of the test split, in a table of the private half; else None."""
    few_judged: bool
    """Whether fewer than FEWEST_JUDGED of its first 10 images were judged, over all queries."""
    marks: list[Mark]

    @property
    def traits(self) -> dict[str, str]:
        """What the filters look at, by their names."""
        return traits(self.run)

    @property
    def moved(self) -> str:
        """By how many places it is higher (+) or lower than on the public half; empty where it
        isn't."""
        moved = (self.public_place or 0) - (self.place or 0)
        return f"{moved:+}".replace("-", "−") if self.public_place and moved else ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in their order, below the headers of their figures."""

    title: str
    headers: tuple[Header, ...]
    row_headers: dict[str, Header]
    """Of `ROW_KEYS`."""
    families: tuple[tuple[Row, ...], ...]
    """The rows in groups: each first stage with the runs that re-rank it, where two-stage runs are
    listed under their first stage; else one group of all."""
    queries: int
    unknown: Unknown | None
    """What labels may miss, by which means of the chosen measure have ranges; None without any."""
    to_audit: int
    """How many images wait for a judgment before there are ranges; 0 where there will be none."""
    bounds: Table | None = None
    """The table of the best possible re-ranks, which compete with no run, with the same columns and
    order. None without any."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows in their order."""
        return tuple(row for family in self.families for row in family)

    @property
    def drawable(self) -> tuple[Row, ...]:
        """All rows, then those of the bounds."""
        return self.rows + (self.bounds.rows if self.bounds else ())

    @property
    def ahead(self) -> bool:
        """Whether a row says that it stays ahead of the next."""
        return any(row.ahead_of for row in self.rows)

    @property
    def halves(self) -> bool:
        """Whether a row has a place on the public half too."""
        return any(row.public_place for row in self.rows)

    @property
    def few_judged(self) -> bool:
        """Whether a row is marked."""
        return any(row.few_judged for row in self.drawable)

    @property
    def measures(self) -> frozenset[str]:
        """The keys of its columns."""
        return frozenset(header.key for header in self.headers)

    @property
    def shows_judged(self) -> bool:
        """Whether it has a column of how many of the runs' images were judged."""
        return any(key.startswith("Judged@") for key in self.measures)


def leaderboard_table(choice: Choice, runs: BoardRuns, beside: Release | None = None) -> Table:
    """The chosen table, with intervals, with groups by the chosen measure, and with its bounds.
    Places, groups and the best figures are those among all runs, also where only some are shown.
    Http404: the choice sorts by no column of it."""
    board = runs.board(choice.split)
    columns = _columns(choice, runs, board)
    if choice.sort and choice.sort not in {*ROW_KEYS, *columns}:
        raise Http404("There is no such column.")
    sort = choice.sort or choice.measure
    if sort not in columns:
        sort = next(iter(columns))
    means = {key: board.means(*column) for key, column in columns.items()}
    shown = [run for run in board.runs if choice.shows(runs.runs[run])]
    order = _by_value(shown, means[sort].get, choice.descending)
    if choice.sort == "parameters":
        order = _by_value(order, lambda run: runs.runs[run].parameters, choice.descending)
    elif choice.sort == "name":
        order.sort(key=lambda run: runs.runs[run].name.casefold(), reverse=choice.descending)
    figures = {
        key: _figures(
            board, runs, means[key], *column, with_intervals=_has_intervals(choice, runs, column[0])
        )
        for key, column in columns.items()
    }
    ahead = certified.ahead_of_next(board, runs, choice.measure) if sort == choice.measure else {}
    of_runs = places(_competing(board, means[sort]))
    groups = statistics.groups(board, choice.measure)
    on_public = _public_places(choice, runs, *columns[sort])
    on_other = {} if beside is None else _means_beside(choice, runs, beside)
    few_judged = _few_judged(choice, runs, board)
    marks = marks_of(runs.release, (runs.runs[run] for run in order))
    rows = [
        Row(
            run=runs.runs[run],
            place=of_runs.get(run),
            figures=tuple(of_column[run] for of_column in figures.values()),
            groups=groups.get(run, ""),
            beside=on_other.get(run, ""),
            ahead_of=of_runs.get(ahead.get(run, 0)),
            public_place=on_public.get(run),
            few_judged=run in few_judged,
            marks=marks[run],
        )
        for run in order
    ]
    competing = [row for row in rows if row.run.pk not in board.oracles]
    bounds = tuple(row for row in rows if row.run.pk in board.oracles)
    sorted_by = choice.sort or sort
    table = Table(
        title=choice.title,
        headers=tuple(
            _header(choice, key, mean_title(measure, choice.task), sorted_by)
            if key == measure
            else _header(choice, key, subset.name, sorted_by, queries=len(subset.queries))
            for key, (measure, subset) in columns.items()
        ),
        row_headers={
            key: _header(choice, key, title, sorted_by) for key, title in ROW_KEYS.items()
        },
        families=_families(competing) if choice.under else (tuple(competing),),
        queries=len(board.queries),
        unknown=certified.missing_on(board, runs, choice.measure),
        to_audit=certified.waiting_on(board, runs, choice.measure),
    )
    if not bounds:
        return table
    below = replace(table, title="Best possible re-ranks", families=(bounds,))
    return replace(table, bounds=below)


def figure(
    measure: str,
    mean: float | None,
    interval: tuple[float, float] | None,
    *,
    missing: tuple[float, float] | None = None,
    best: bool = False,
) -> Figure:
    """A mean as printed, with its interval and its range."""
    return Figure(
        printed(measure, mean),
        mean,
        interval="" if interval is None else printed_span(measure, interval),
        missing="" if missing is None else printed_span(measure, missing),
        best=best,
    )


def _columns(choice: Choice, runs: BoardRuns, board: Board) -> dict[str, tuple[str, Subset]]:
    """Key of a column -> the measure and the queries that it averages over. The key is the
    measure's, or the subset's where columns differ by that."""
    if choice.view not in (ALL, MEASURES):
        parts = (board.whole, *board.subsets(choice.view))
        return {part.key: (choice.measure, part) for part in parts}
    measures = runs.measures
    if choice.view == ALL:
        measures = list(choice.columns) or usual_columns(runs, choice.split)
    return {key: (key, board.whole) for key in [*measures, choice.measure]}


def usual_columns(runs: BoardRuns, split: str) -> list[str]:
    """Keys of the measures of a split's table of all queries where none are chosen."""
    judged = [JUDGED] if JUDGED in runs.coverage(split) else []
    return [*runs.main_measures(split), *judged]


def _figures(
    board: Board,
    runs: BoardRuns,
    means: dict[int, float],
    measure: str,
    subset: Subset,
    *,
    with_intervals: bool,
) -> dict[int, Figure]:
    """A column's figures by run."""
    intervals = statistics.intervals(board, measure, subset) if with_intervals else {}
    with_ranges = with_intervals and subset.grouping == ALL
    ranges = certified.mean_ranges(board, runs, measure) if with_ranges else {}
    best = best_runs(measure, _competing(board, means))
    return {
        run: figure(
            measure,
            means.get(run),
            intervals.get(run),
            missing=ranges[run].mean if run in ranges else None,
            best=run in best,
        )
        for run in board.runs
    }


def _competing(board: Board, means: dict[int, float]) -> dict[int, float]:
    return {run: mean for run, mean in means.items() if run not in board.oracles}


def _public_places(choice: Choice, runs: BoardRuns, measure: str, subset: Subset) -> dict[int, int]:
    """The places on the public half, beside those of all queries of the private one."""
    if choice.split != PRIVATE or subset.grouping != ALL or PUBLIC not in runs.splits:
        return {}
    public = runs.board(PUBLIC)
    return places(_competing(public, public.means(measure)))


def _by_value(
    runs: Iterable[int], value_of: Callable[[int], float | None], descending: bool
) -> list[int]:
    """Runs by value, those without one last either way; equal ones keep their order."""
    values = {run: value_of(run) for run in runs}
    known = {run: value for run, value in values.items() if value is not None}
    rest = [run for run in values if run not in known]
    return [*sorted(known, key=known.__getitem__, reverse=descending), *rest]


def _has_intervals(choice: Choice, runs: BoardRuns, measure: str) -> bool:
    if choice.view not in (ALL, MEASURES):
        return True
    return measure in (choice.measure, *runs.main_measures(choice.split))


def _few_judged(choice: Choice, runs: BoardRuns, board: Board) -> set[int]:
    """The ids of the runs that are marked."""
    if JUDGED not in runs.coverage(choice.split):
        return set()
    # Eight of ten at each query has a mean that may be rounded down.
    fewest = FEWEST_JUDGED - mean_margin(len(board.queries), parse_measure(JUDGED))
    return {run for run, share in board.means(JUDGED).items() if share < fewest}


def _header(
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


def _families(rows: list[Row]) -> tuple[tuple[Row, ...], ...]:
    """Each first stage with the runs that re-rank it, in the order of the rows; a two-stage run
    whose first stage isn't shown is listed alone."""
    shown = {row.run.pk for row in rows}
    under: dict[int, list[Row]] = {}
    heads = []
    for row in rows:
        first = row.run.first_stage_id
        if first in shown and first is not None:
            under.setdefault(first, []).append(row)
        else:
            heads.append(row)
    return tuple((head, *_below(head, under)) for head in heads)


def _below(head: Row, under: dict[int, list[Row]]) -> list[Row]:
    """The runs that re-rank a run, each followed by those that re-rank it in turn."""
    return [below for row in under.get(head.run.pk, ()) for below in (row, *_below(row, under))]


def _means_beside(choice: Choice, runs: BoardRuns, other: Release) -> dict[int, str]:
    """Each run's mean in the chosen measure on another version, over all of its queries."""
    means = version_board(other, runs.runs, choice.split).means(choice.measure)
    return {run: printed(choice.measure, mean) for run, mean in means.items()}
