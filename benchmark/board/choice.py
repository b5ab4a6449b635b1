"""What a reader asked of the leaderboard, as the address says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from benchmark.board.selectors import PAPER_MEASURES, BoardRuns
from benchmark.board.tables import (
    ALL,
    GROUPINGS,
    SPLITS,
    TEST,
    Board,
    Column,
    measure_columns,
    subset_columns,
    subsets,
)
from benchmark.models import Run
from benchmark.scoring.measures import mean_name, parse_measure

#: The table of every measure over all queries, beside those of `GROUPINGS`.
MEASURES: Final = "measures"
VIEWS: Final = {**GROUPINGS, MEASURES: "Every measure"}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which table is shown, and in which order."""

    task: str = Run.Task.FULL
    split: str = TEST
    view: str = ALL
    """A key of `VIEWS`."""
    measure: str = ""
    """A measure's key; sorts, is tested and drawn."""
    sort: str = ""
    """Key of a column; empty: the measure, or the first."""
    descending: bool = True
    under: bool = False
    """Whether two-stage runs stand under their first stage."""
    runs: tuple[int, ...] = ()
    """Those drawn by category; empty: the best."""
    beside: int | None = None
    """Another version of the release, whose figures stand beside."""

    @property
    def fields(self) -> list[tuple[str, str]]:
        """What differs from the usual, as fields of a form, without the runs."""
        usual = Choice(measure=PAPER_MEASURES[Run.Task(self.task)][0])
        order = "" if self.descending else "asc"
        pairs = [
            ("task", self.task, usual.task),
            ("split", self.split, usual.split),
            ("view", self.view, usual.view),
            ("measure", self.measure, usual.measure),
            ("sort", self.sort, usual.sort),
            ("order", order, ""),
            ("beside", str(self.beside or ""), ""),
            ("stages", "under" if self.under else "", ""),
        ]
        return [(name, value) for name, value, default in pairs if value != default]

    def address(self, **changes: Any) -> str:
        """The query string of this choice with some things changed, without what is usual."""
        choice = replace(self, **changes)
        return f"?{urlencode([*choice.fields, *(('run', run) for run in choice.runs)])}"

    @property
    def run_address(self) -> str:
        """The query string of a run's page under this choice."""
        return f"?{urlencode({'split': self.split, 'measure': self.measure})}"

    @property
    def title(self) -> str:
        """What the table is called."""
        queries = f"{SPLITS[self.split].lower()} queries"
        if self.view == ALL:
            return queries.capitalize()
        if self.view == MEASURES:
            return f"Every measure, {queries}"
        return f"{mean_title(self.measure, self.task)} {VIEWS[self.view].lower()}, {queries}"


def read_choice(parameters: Any) -> Choice:
    """The choice that an address makes; what it doesn't say, or says wrongly, is as usual."""
    task = _known(parameters.get("task"), Run.Task.values, Run.Task.FULL)
    return Choice(
        task=task,
        split=_known(parameters.get("split"), SPLITS, TEST),
        view=_known(parameters.get("view"), VIEWS, ALL),
        measure=read_measure(parameters.get("measure"), task),
        sort=parameters.get("sort", "")[:100],
        descending=parameters.get("order") != "asc",
        under=parameters.get("stages") == "under",
        runs=tuple(dict.fromkeys(int(one) for one in parameters.getlist("run") if is_id(one))),
        beside=int(parameters["beside"]) if is_id(parameters.get("beside")) else None,
    )


def visible_choice(choice: Choice, runs: BoardRuns) -> Choice:
    """The choice as far as its reader may see it: of a split whose labels are hidden only the table
    of all queries in the measures that are shown; of one with too few queries nothing."""
    if choice.split not in runs.splits:
        choice = replace(choice, split=next(iter(runs.splits)))
    if not runs.hides(choice.split):
        return choice
    measures = runs.main_measures(choice.split)
    measure = choice.measure if choice.measure in measures else measures[0]
    return replace(choice, view=ALL, measure=measure, beside=None, runs=())


def read_measure(text: str | None, task: str) -> str:
    """The key of a measure, or of the task's first where there is no such measure."""
    try:
        return parse_measure(text or "").key
    except ValueError:
        return PAPER_MEASURES[Run.Task(task)][0]


def columns_of(choice: Choice, runs: BoardRuns, board: Board) -> tuple[Column, ...]:
    """The columns of the table that is asked for."""
    whole = subsets(board.query_ids, runs.queries, ALL)[0]
    if choice.view == MEASURES:
        return measure_columns([*runs.measures, choice.measure], whole)
    if choice.view == ALL:
        return measure_columns([*runs.main_measures(choice.split), choice.measure], whole)
    parts = subsets(board.query_ids, runs.queries, choice.view)
    return subset_columns(choice.measure, (whole, *parts))


def mean_title(key: str, task: str = Run.Task.FULL) -> str:
    """What the mean of a measure is called: "mAP@50".

    Measures over the whole of the fixed lists are called without their cut-off, as in the paper.
    """
    if task == Run.Task.RERANK and key in PAPER_MEASURES[Run.Task.RERANK]:
        return {"AP": "AP", "nDCG": "nDCG", "RR": "MRR"}[key.partition("@")[0]]
    return mean_name(parse_measure(key))


def measure_groups(keys: Sequence[str]) -> Mapping[str, list[str]]:
    """Measures by kind, for choosing one."""
    groups: dict[str, list[str]] = {}
    for key in keys:
        groups.setdefault(_KINDS.get(parse_measure(key).kind, "Others"), []).append(key)
    return groups


_KINDS: Final = {
    "AP": "Average precision",
    "nDCG": "Discounted cumulative gain",
    "RR": "Reciprocal rank",
    "P": "Precision",
    "R": "Recall",
    "CappedR": "Recall over min(k, R)",
    "Judged": "Share that was judged",
}


def _known(text: str | None, known: Any, usual: str) -> str:
    return text if text is not None and text in known else usual


def is_id(text: str | None) -> bool:
    """Whether a parameter of an address writes an id in plain digits."""
    return bool(text) and str(text).isascii() and str(text).isdigit() and len(str(text)) <= 18
