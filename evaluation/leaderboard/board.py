"""Runs beside each other on the queries of one split, by their per-query scores.

Pure: it knows arrays and the release's queries, no database and no page. Scores are from 0 to 1;
`printed` writes them as the INQUIRE paper's tables do. Runs are known by their ids.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from evaluation.scoring.hidden_labels import HALVES, LabelsHidden, Summary
from evaluation.scoring.measures import parse_measure
from evaluation.scoring.rounding import mean_margin, score_margin, settled
from releases.snapshot.snapshot import SnapshotQuery

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

VAL: Final = "val"
TEST: Final = "test"
BOTH: Final = "both"
SPLITS: Final = {TEST: "Test", VAL: "Validation", BOTH: "Validation and test", **HALVES}

ALL: Final = "all"
SUPERCATEGORY: Final = "supercategory"
CATEGORY: Final = "category"
ICONIC_GROUP: Final = "iconic_group"
TERMS: Final = "terms"
#: The ways to group queries, with the titles of their tables.
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
    """"val", "test": the splits that the run holds queries of, and so is measured on."""
    oracle: bool = False
    """Whether it knows the labels, as the best possible re-rank does: it is never marked as the
    best and never in a group of runs."""


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
        """Its name in addresses and exports: "all" or "category:Human Impact"."""
        return ALL if self.grouping == ALL else f"{self.grouping}:{self.name}"


@dataclass(frozen=True, slots=True)
class Board:
    """Runs measured on the same queries of one split."""

    split: str
    queries: tuple[SnapshotQuery, ...]
    """(q) by id, ascending."""
    runs: tuple[int, ...]
    """(r) the ids of the runs that hold the split."""
    oracles: frozenset[int]
    """The ids of the runs that know the labels."""
    values: Mapping[str, Floats]
    """Measure key -> (r, q); NaN throughout the row of a run without that measure."""
    fingerprint: str = ""
    """Changes with the split, the runs and their scores; for `cached`."""
    summary: Summary | None = None
    """Instead of `values`, where the labels of the split are hidden from the reader."""

    @property
    def query_ids(self) -> Ids:
        """(q,) ascending."""
        return np.array([query.query_id for query in self.queries], dtype=np.int64)

    @property
    def competitors(self) -> tuple[int, ...]:
        """The ids of the runs that compete: all but the oracles."""
        return tuple(run for run in self.runs if run not in self.oracles)

    def scores(self, measure: str) -> Floats:
        """(r, q) of a measure; NaN throughout if no run has it. LabelsHidden."""
        if self.summary is not None:
            raise LabelsHidden
        unknown = np.full((len(self.runs), len(self.queries)), np.nan)
        return self.values.get(measure, unknown)

    def scores_of(self, run: int, measure: str) -> Floats:
        """(q,) of one run; NaN throughout if it lacks the measure. LabelsHidden."""
        scores: Floats = self.scores(measure)[self.runs.index(run)]
        return scores

    def subsets(self, grouping: str) -> tuple[Subset, ...]:
        """The subsets of the queries in a grouping; see `subsets`."""
        return subsets(self.queries, grouping)

    @property
    def whole(self) -> Subset:
        """All queries."""
        return self.subsets(ALL)[0]

    def means(self, measure: str, subset: Subset | None = None) -> dict[int, float]:
        """Run id -> mean over some of the queries, by default all, of the runs that have one. Means
        that are equal on paper are the same number, so that they can be compared. LabelsHidden."""
        subset = self.whole if subset is None else subset
        means = np.empty(0)
        if self.summary is not None:
            means = self.summary.means.get(measure, means)
            if subset.grouping != ALL:
                raise LabelsHidden
        elif len(subset.queries):
            means = self.scores(measure)[:, subset.queries].mean(axis=1)
            means = settled(means, mean_margin(len(subset.queries), parse_measure(measure)))
        of_runs = zip(self.runs, means.tolist(), strict=False)
        return {run: mean for run, mean in of_runs if not math.isnan(mean)}


def make_board(
    runs: Mapping[int, RunValues],
    queries: Mapping[int, SnapshotQuery],
    query_ids: Iterable[int],
    *,
    split: str,
    fingerprint: str = "",
) -> Board:
    """The board of the runs that hold a split.

    `query_ids` are the queries that are scored at all. A run scores 0 at a query of the split that
    it lacks. ValueError: an unknown split.
    """
    if split not in SPLITS:
        raise ValueError(f"there is no split {split!r}")
    splits = whole_splits(split)
    scored = (queries[query_id] for query_id in sorted(set(query_ids)))
    shown = tuple(query for query in scored if query.split in splits)
    ids = np.array([query.query_id for query in shown], dtype=np.int64)
    held = {run: values for run, values in runs.items() if splits <= values.splits}
    measures = dict.fromkeys(key for values in held.values() for key in values.values)
    matrices = {key: np.zeros((len(held), len(ids))) for key in measures}
    for row, values in enumerate(held.values()):
        columns = np.searchsorted(ids, values.query_ids)
        inside = np.append(ids, -1)[columns] == values.query_ids
        for key, matrix in matrices.items():
            if key in values.values:
                matrix[row, columns[inside]] = values.values[key][inside]
            else:
                matrix[row] = np.nan
    oracles = frozenset(run for run, values in held.items() if values.oracle)
    return Board(split, shown, tuple(held), oracles, matrices, fingerprint)


def whole_splits(split: str) -> frozenset[str]:
    """ "val" and "test", as far as a run needs queries of them to be measured on a split."""
    return {BOTH: frozenset({VAL, TEST}), VAL: frozenset({VAL})}.get(split, frozenset({TEST}))


def subsets(queries: Iterable[SnapshotQuery], grouping: str) -> tuple[Subset, ...]:
    """The subsets of queries in a grouping, by name, without empty ones.

    The part without an iconic group comes after the others, and the part where the group isn't
    known last. The part with scientific terms comes first, as in the paper's Table 5. ValueError:
    an unknown grouping.
    """
    if grouping not in GROUPINGS:
        raise ValueError(f"there is no grouping {grouping!r}")
    parts: dict[str, list[int]] = {}
    for position, query in enumerate(queries):
        parts.setdefault(_part(query, grouping), []).append(position)
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


def printed(measure: str, value: float | None) -> str:
    """A value as the paper prints it: in percent with one decimal, a reciprocal rank from 0 to 1
    with two."""
    if value is None:
        return "–"
    return f"{100 * value:.1f}" if parse_measure(measure).kind.in_percent else f"{value:.2f}"


def printed_span(measure: str, span: Iterable[float]) -> str:
    """Two values as printed: "28.1–38.0"."""
    return "–".join(printed(measure, edge) for edge in span)


def places(means: Mapping[int, float]) -> dict[int, int]:
    """Each run's place by falling mean, from 1, equal ones sharing theirs."""
    return {run: 1 + sum(other > mean for other in means.values()) for run, mean in means.items()}


def best_runs(measure: str, means: Mapping[int, float]) -> set[int]:
    """The runs whose mean is the highest as printed; none where fewer than two compete, or where
    more is not better."""
    if len(means) < 2 or not parse_measure(measure).kind.more_is_better:
        return set()
    highest = printed(measure, max(means.values()))
    return {run for run, mean in means.items() if printed(measure, mean) == highest}


Verdict = Literal["win", "tie", "loss"]


def verdicts(differences: Floats, measure: str | None = None) -> dict[Verdict, int]:
    """How many queries the first of two runs wins, ties and loses by their differences in a
    measure, by default in any."""
    margin = score_margin(parse_measure(measure) if measure else None)
    wins = int((differences > margin).sum())
    losses = int((differences < -margin).sum())
    return {"win": wins, "tie": len(differences) - wins - losses, "loss": losses}


def ranks_among(board: Board, run: int, measure: str) -> npt.NDArray[np.int64]:
    """(q,) a run's rank among the competing runs at each query, from 1, equal ones sharing theirs;
    0 for an oracle and for a run without the measure. LabelsHidden."""
    scores, own = board.scores(measure), board.scores_of(run, measure)
    competes = [other not in board.oracles for other in board.runs]
    above = (scores[competes] > own + score_margin(parse_measure(measure))).sum(axis=0)
    return np.where(np.isnan(own) | (run in board.oracles), 0, above + 1)
