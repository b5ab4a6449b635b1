"""A reader's choices on the leaderboard, in the address of its page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from django.http import Http404, QueryDict

from core.address_choices import chosen, chosen_id, chosen_ids
from evaluation.leaderboard.board import ALL, GROUPINGS, SPLITS, TEST, VAL
from evaluation.leaderboard.selectors import BoardRuns
from evaluation.runs.models import Run
from evaluation.scoring.measures import HEADLINES, mean_title, parse_measure

#: The tasks, as pages call them.
TASKS: Final[dict[str, str]] = {Run.Task.FULL: "Full ranking", Run.Task.RERANK: "Re-ranking"}
#: The table of every measure over all queries, beside those of `GROUPINGS`.
MEASURES: Final = "measures"
VIEWS: Final = {**GROUPINGS, MEASURES: "Every measure"}
#: The sizes to choose from: title, and the least and less than how many million parameters.
SIZES: Final = {
    "small": ("Under 100 M", 0, 100),
    "medium": ("100 to 500 M", 100, 500),
    "large": ("500 M to 1 B", 500, 1000),
    "huge": ("1 B and more", 1000, float("inf")),
}
WEIGHTS: Final = {"open": "Open", "closed": "Closed"}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which table is shown, and in which order."""

    task: str = Run.Task.FULL
    split: str = TEST
    view: str = ALL
    """A key of `VIEWS`."""
    measure: str = ""
    """Key of the measure that sorts the table, groups the runs and is drawn."""
    sort: str = ""
    """Key of a column; empty: the measure, or the first."""
    descending: bool = True
    under: bool = False
    """Whether two-stage runs are listed under their first stage."""
    runs: tuple[int, ...] = ()
    """The runs drawn by category; empty: the best."""
    beside: int | None = None
    """Id of another version of the release, whose means are shown in a further column."""
    columns: tuple[str, ...] = ()
    """Keys of the measures shown in the table of all queries; empty: the usual ones."""
    method: str = ""
    """The kind of the runs shown; empty: all."""
    size: str = ""
    """The size of the runs shown, a key of `SIZES`; empty: all, also those that state none."""
    weights: str = ""
    """A key of `WEIGHTS`; empty: all, also the runs that don't state it."""

    @property
    def filtered(self) -> bool:
        """Whether some runs aren't shown."""
        return bool(self.method or self.size or self.weights)

    def shows(self, run: Run) -> bool:
        """Whether a run passes the filters."""
        return all(getattr(self, name) in ("", value) for name, value in traits(run).items())

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The choices that differ from the defaults, as fields of a form, without the runs."""
        usual = Choice(measure=HEADLINES[self.task][0])
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
            ("method", self.method, ""),
            ("size", self.size, ""),
            ("weights", self.weights, ""),
            *(("column", key, "") for key in self.columns),
        ]
        return [(name, value) for name, value, default in pairs if value != default]

    @property
    def all_runs(self) -> str:
        """The query string of this choice without filters."""
        return self.address(method="", size="", weights="")

    def address(self, **changes: Any) -> str:
        """The query string of this choice with some changes, without the defaults."""
        choice = replace(self, **changes)
        return f"?{urlencode([*choice.fields, *(('run', run) for run in choice.runs)])}"

    @property
    def run_address(self) -> str:
        """The query string of a run's page under this choice."""
        return f"?{urlencode({'split': self.split, 'measure': self.measure})}"

    @property
    def title(self) -> str:
        """The title of the table."""
        queries = f"{SPLITS[self.split].lower()} queries"
        if self.view == ALL:
            return queries.capitalize()
        if self.view == MEASURES:
            return f"Every measure, {queries}"
        return f"{mean_title(self.measure, self.task)} {VIEWS[self.view].lower()}, {queries}"


def traits(run: Run) -> dict[str, str]:
    """What the filters look at in a run, by their names; empty where it doesn't state it."""
    size = ""
    if run.parameters is not None:
        sizes = SIZES.items()
        size = next(key for key, (_, least, limit) in sizes if least <= run.parameters < limit)
    weights = {True: "open", False: "closed", None: ""}
    return {"method": run.kind, "size": size, "weights": weights[run.open_weights]}


def filters(choice: Choice, runs: Iterable[Run]) -> list[tuple[str, str, str, list[Any]]]:
    """The filters by which the runs differ: name in the address, title, chosen value, options."""
    competing = [run for run in runs if run.kind != Run.Kind.BEST]
    kinds = {run.kind for run in competing}
    sizes = [(key, title) for key, (title, *_) in SIZES.items()]
    shown: list[tuple[str, str, str, list[Any]]] = [
        ("method", "Method", choice.method, [pair for pair in Run.Kind.choices if pair[0] in kinds])
    ]
    if any(run.parameters is not None for run in competing):
        shown.append(("size", "Size", choice.size, sizes))
    if any(run.open_weights is not None for run in competing):
        shown.append(("weights", "Weights", choice.weights, [*WEIGHTS.items()]))
    return [each for each in shown if each[2] or len(each[3]) > 1]


def read_choice(parameters: QueryDict) -> Choice:
    """The choice in an address, with defaults for what it leaves out. Http404: an unknown value."""
    task = chosen(parameters, "task", Run.Task.values, Run.Task.FULL)
    return Choice(
        task=task,
        split=chosen(parameters, "split", SPLITS, TEST),
        view=chosen(parameters, "view", VIEWS, ALL),
        measure=read_measure(parameters, task),
        sort=parameters.get("sort", "")[:100],
        descending=chosen(parameters, "order", ("asc", "desc")) != "asc",
        under=chosen(parameters, "stages", ("under",)) == "under",
        runs=tuple(chosen_ids(parameters, "run")),
        beside=chosen_id(parameters, "beside"),
        columns=_read_columns(parameters),
        method=chosen(parameters, "method", Run.Kind.values),
        size=chosen(parameters, "size", SIZES),
        weights=chosen(parameters, "weights", WEIGHTS),
    )


@dataclass(frozen=True, slots=True)
class VisibleMeasure:
    """The split and measure that a page shows, as far as its reader may see them."""

    task: str
    split: str
    splits: Mapping[str, str]
    """The splits to choose from, with their titles."""
    measure: str
    measures: Sequence[str]
    """The measures to choose from."""
    main_measures: tuple[str, ...]
    """The measures of the first table."""
    labels_hidden: bool
    """Whether only a summary of the split is shown."""

    @property
    def context(self) -> dict[str, Any]:
        """The context of templates that show and change the choice."""
        return {
            "split": self.split,
            "splits": self.splits.items(),
            "split_title": SPLITS[self.split],
            "measure": self.measure,
            "measure_title": mean_title(self.measure, self.task),
            "measures": measure_options(self.measures, self.task),
            "labels_hidden": self.labels_hidden,
        }


def visible_measure(
    runs: BoardRuns, split: str, measure: str, splits: Mapping[str, str] | None = None
) -> VisibleMeasure:
    """The split if it is among `splits` (by default all that the reader of `runs` may see), else
    the first of these; and the measure if it is shown for the split, else the split's first."""
    splits = runs.splits if splits is None else splits
    split = split if split in splits else next(iter(splits), VAL)
    labels_hidden, main = runs.labels_hidden(split), runs.main_measures(split)
    known = list(dict.fromkeys([*main, *([] if labels_hidden else [*runs.measures, measure])]))
    return VisibleMeasure(
        task=runs.task,
        split=split,
        splits=splits,
        measure=measure if measure in known else main[0],
        measures=known,
        main_measures=main,
        labels_hidden=labels_hidden,
    )


def visible_choice(choice: Choice, runs: BoardRuns) -> tuple[Choice, VisibleMeasure]:
    """The choice as far as its reader may see it: for a split whose labels are hidden, only the
    table of all queries in the measures that are shown."""
    seen = visible_measure(runs, choice.split, choice.measure)
    columns = tuple(key for key in choice.columns if key in seen.measures)
    choice = replace(choice, split=seen.split, columns=columns)
    if seen.labels_hidden:
        choice = replace(choice, view=ALL, measure=seen.measure, beside=None, runs=(), columns=())
    return choice, seen


def measure_options(keys: Iterable[str], task: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Measures by kind, for choosing one: (kind, [(key, title of the mean)])."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for key in keys:
        kinds.setdefault(parse_measure(key).kind.title, []).append((key, mean_title(key, task)))
    return list(kinds.items())


def read_measure(parameters: QueryDict, task: str) -> str:
    """The key of the measure that an address names, by default the task's first. Http404: there is
    no such measure."""
    return _measure_key(parameters.get("measure") or HEADLINES[task][0])


def _read_columns(parameters: QueryDict) -> tuple[str, ...]:
    """The keys of the measures that an address names as columns. Http404: there is no such one."""
    texts = filter(None, parameters.getlist("column"))
    return tuple(dict.fromkeys(_measure_key(text) for text in texts))


def _measure_key(text: str) -> str:
    try:
        return parse_measure(text).key
    except ValueError as error:
        raise Http404(str(error)) from error
