"""The leaderboard's tables, from per-query scores of many runs.

Pure: it knows arrays and the release's queries, no database and no page. Scores are from 0 to 1;
`printed` writes them as the INQUIRE paper's tables do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from evaluation.scoring.hidden import LabelsHidden, Summary
from evaluation.scoring.measures import parse_measure
from releases.snapshot.snapshot import SnapshotQuery

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

VAL: Final = "val"
TEST: Final = "test"
BOTH: Final = "both"
SPLITS: Final = {TEST: "Test", VAL: "Validation", BOTH: "Validation and test"}

ALL: Final = "all"
SUPERCATEGORY: Final = "supercategory"
CATEGORY: Final = "category"
ICONIC_GROUP: Final = "iconic_group"
TERMS: Final = "terms"
#: The ways in which queries are taken apart, and what the tables are called.
GROUPINGS: Final = {
    ALL: "All queries",
    SUPERCATEGORY: "By supercategory",
    CATEGORY: "By category",
    ICONIC_GROUP: "By iconic group",
    TERMS: "By scientific terms",
}
NO_GROUP: Final = "No group"
NOT_KNOWN: Final = "Not known"


@dataclass(frozen=True, slots=True)
class RunValues:
    """One run's scores: a value for each query, per measure."""

    query_ids: Ids
    """(n,) ascending."""
    values: Mapping[str, Floats]
    """Measure key -> (n,)."""
    splits: frozenset[str]
    """"val", "test": the splits that the run holds, and so is measured on."""
    oracle: bool = False
    """Knows the labels, as the best possible re-rank does: never the best, never in a group."""


@dataclass(frozen=True, slots=True)
class Subset:
    """Some of the queries, such as those of a category."""

    grouping: str
    """A key of `GROUPINGS`."""
    name: str
    queries: Ids
    """(m,) their positions among the board's queries, ascending."""

    @property
    def key(self) -> str:
        """What addresses and exports call it: "all" or "category:Human Impact"."""
        return ALL if self.grouping == ALL else f"{self.grouping}:{self.name}"


@dataclass(frozen=True, slots=True)
class Board:
    """Runs measured on the same queries of one split."""

    split: str
    query_ids: Ids
    """(q,) ascending."""
    runs: tuple[int, ...]
    """Positions, among the runs it was made from, of those that hold the split."""
    values: Mapping[str, Floats]
    """Measure key -> (runs, q); NaN throughout the row of a run without that measure."""
    oracles: frozenset[int]
    """Positions within `runs`."""
    summary: Summary | None = None
    """Instead of `values`, where the labels of the split are hidden from the reader."""

    @property
    def competitors(self) -> int:
        """How many runs compete: all but the oracles."""
        return len(self.runs) - len(self.oracles)

    def of(self, measure: str) -> Floats:
        """(runs, q) of a measure; NaN throughout if no run has it. LabelsHidden."""
        if self.summary is not None:
            raise LabelsHidden
        found = self.values.get(measure)
        if found is None:
            return np.full((len(self.runs), len(self.query_ids)), np.nan)
        return found


@dataclass(frozen=True, slots=True)
class Cell:
    """A mean over a subset's queries."""

    text: str
    """As printed."""
    value: float | None
    """None where there is nothing to average."""
    best: bool = False
    """The column's highest as printed; of several equal ones, all."""
    interval: str = ""
    """"28.1–38.0"; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Column:
    """A measure over some of the queries."""

    key: str
    """Of the measure, or of the subset."""
    measure: str
    subset: Subset

    @property
    def queries(self) -> int:
        """Over how many queries it averages."""
        return len(self.subset.queries)


@dataclass(frozen=True, slots=True)
class Row:
    """A run's means."""

    run: int
    """Position among the runs that the board was made from."""
    cells: tuple[Cell, ...]
    place: int | None
    """From 1 in the order of the sorted column, equal ones sharing theirs; None for an oracle and
    where there is no value."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in their order."""

    rows: tuple[Row, ...]
    sort: str
    """Key of the column by which the rows are sorted."""


def board(
    runs: Sequence[RunValues],
    queries: Mapping[int, SnapshotQuery],
    query_ids: Iterable[int],
    *,
    split: str,
) -> Board:
    """Put the runs that hold a split side by side.

    `query_ids` are the queries that are scored at all. A query of the split that a run lacks counts
    0. ValueError: an unknown split.
    """
    if split not in SPLITS:
        raise ValueError(f"there is no split {split!r}")
    splits = {VAL, TEST} if split == BOTH else {split}
    ids = np.array(
        sorted(one for one in set(query_ids) if queries[one].split in splits), dtype=np.int64
    )
    shown = tuple(place for place, run in enumerate(runs) if splits <= run.splits)
    measures = dict.fromkeys(key for place in shown for key in runs[place].values)
    values = {key: np.zeros((len(shown), len(ids))) for key in measures}
    for row, place in enumerate(shown):
        run = runs[place]
        where = np.searchsorted(ids, run.query_ids)
        inside = np.append(ids, -1)[where] == run.query_ids
        for key, matrix in values.items():
            if key in run.values:
                matrix[row, where[inside]] = run.values[key][inside]
            else:
                matrix[row] = np.nan
    oracles = frozenset(row for row, place in enumerate(shown) if runs[place].oracle)
    return Board(split, ids, shown, values, oracles)


def subsets(
    query_ids: Ids, queries: Mapping[int, SnapshotQuery], grouping: str
) -> tuple[Subset, ...]:
    """The parts into which a grouping takes the queries, by name; empty parts don't appear.

    Queries without an iconic group are one part, the last; after it come those of which it isn't
    known. With scientific terms comes first, as in the paper's Table 5. ValueError: an unknown
    grouping.
    """
    if grouping not in GROUPINGS:
        raise ValueError(f"there is no grouping {grouping!r}")
    parts: dict[str, list[int]] = {}
    for place, query_id in enumerate(query_ids.tolist()):
        parts.setdefault(_part(queries[query_id], grouping), []).append(place)
    if grouping == ALL and not parts:
        parts[GROUPINGS[ALL]] = []
    names = sorted(parts, key=lambda name: (name == NOT_KNOWN, name == NO_GROUP, name.casefold()))
    return tuple(Subset(grouping, name, np.array(parts[name], dtype=np.int64)) for name in names)


def _part(query: SnapshotQuery, grouping: str) -> str:
    if grouping == SUPERCATEGORY:
        return query.supercategory
    if grouping == CATEGORY:
        return query.category
    if grouping == ICONIC_GROUP:
        return NOT_KNOWN if query.iconic_group is None else query.iconic_group or NO_GROUP
    if grouping == TERMS:
        if query.scientific_terms is None:
            return NOT_KNOWN
        return "With scientific terms" if query.scientific_terms else "Without scientific terms"
    return GROUPINGS[ALL]


def measure_columns(measures: Iterable[str], subset: Subset) -> tuple[Column, ...]:
    """A column for each measure, over the same queries."""
    return tuple(Column(key, key, subset) for key in dict.fromkeys(measures))


def subset_columns(measure: str, parts: Iterable[Subset]) -> tuple[Column, ...]:
    """A column for each part of the queries, in the same measure."""
    return tuple(Column(part.key, measure, part) for part in parts)


def table(board: Board, columns: Sequence[Column], *, sort: str, descending: bool = True) -> Table:
    """Means per run and column, sorted by one of the columns; by the first if `sort` is none.

    Runs without a value there come last either way; equal ones keep the order they came in.
    ValueError: no columns.
    """
    if not columns:
        raise ValueError("a table needs a column")
    keys = [column.key for column in columns]
    sorted_by = keys.index(sort) if sort in keys else 0
    means = np.stack([column_means(board, column) for column in columns], axis=1)
    best = [_best(means[:, place], column, board) for place, column in enumerate(columns)]
    order = _order(means[:, sorted_by], descending)
    places = _places(means[:, sorted_by], board.oracles)
    rows = tuple(
        Row(
            run=board.runs[row],
            cells=tuple(
                _cell(column.measure, value, row in best[place])
                for place, (column, value) in enumerate(zip(columns, means[row], strict=True))
            ),
            place=places[row],
        )
        for row in order
    )
    return Table(rows, keys[sorted_by])


def column_means(board: Board, column: Column) -> Floats:
    """(runs,) means over the column's queries; NaN where there are none. LabelsHidden."""
    unknown = np.full(len(board.runs), np.nan)
    if board.summary is not None:
        if column.subset.grouping != ALL:
            raise LabelsHidden
        return board.summary.means.get(column.measure, unknown)
    if not column.queries:
        return unknown
    means: Floats = board.of(column.measure)[:, column.subset.queries].mean(axis=1)
    return means


def printed(measure: str, value: float | None) -> str:
    """As the paper prints it: percent with one decimal, reciprocal ranks from 0 to 1 with two."""
    if value is None:
        return "–"
    return f"{100 * value:.1f}" if parse_measure(measure).kind.in_percent else f"{value:.2f}"


def _cell(measure: str, mean: float, best: bool) -> Cell:
    value = None if np.isnan(mean) else float(mean)
    return Cell(printed(measure, value), value, best)


def _best(means: Floats, column: Column, board: Board) -> Collection[int]:
    """Rows that print the column's highest figure; none where fewer than two compete, or where
    more is not better."""
    if not parse_measure(column.measure).kind.more_is_better:
        return ()
    rows = [
        row for row in range(len(means)) if row not in board.oracles and not np.isnan(means[row])
    ]
    if len(rows) < 2:
        return ()
    highest = printed(column.measure, float(means[rows].max()))
    return {row for row in rows if printed(column.measure, float(means[row])) == highest}


def _order(means: Floats, descending: bool) -> list[int]:
    known = ~np.isnan(means)
    signed = np.where(known, -means if descending else means, np.inf)
    order: list[int] = np.lexsort((signed, ~known)).tolist()
    return order


def _places(means: Floats, oracles: Collection[int]) -> list[int | None]:
    """From 1 by descending mean."""
    competing = [row not in oracles and not np.isnan(mean) for row, mean in enumerate(means)]
    among = means[competing]
    return [
        int((among > mean).sum()) + 1 if competes else None
        for mean, competes in zip(means, competing, strict=True)
    ]


Verdict = Literal["win", "tie", "loss"]


def verdicts(differences: Floats) -> dict[Verdict, int]:
    """How many queries the first of two runs wins, ties and loses; differences of less than a
    billionth are ties."""
    wins = int((differences > 1e-9).sum())
    losses = int((differences < -1e-9).sum())
    return {"win": wins, "tie": len(differences) - wins - losses, "loss": losses}


def ranks_among(values: Floats, oracles: Collection[int]) -> npt.NDArray[np.int64]:
    """(runs, q) each run's rank among the runs at each query, from 1, equal ones sharing theirs.

    A NaN and an oracle have rank 0 and none counts them.
    """
    known = ~np.isnan(values)
    known[list(oracles)] = False
    filled = np.where(known, values, -np.inf)
    above = (filled[None, :, :] > filled[:, None, :] + 1e-9).sum(axis=1)
    return np.where(known, above + 1, 0)
