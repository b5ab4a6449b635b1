"""A release's leaderboard as CSV, JSON, LaTeX and one web page: published runs only, both tasks."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

from evaluation.leaderboard import page, statistics
from evaluation.leaderboard.choice import Choice
from evaluation.leaderboard.latex import leaderboard_tex
from evaluation.leaderboard.selectors import BoardRuns, published_runs
from evaluation.leaderboard.tables import (
    BOTH,
    SPLITS,
    TEST,
    VAL,
    Board,
    Floats,
    Subset,
    column_means,
    measure_columns,
    subsets,
)
from evaluation.runs.models import Run
from evaluation.runs.services import CARD_FIELDS
from evaluation.scoring.measures import HEADLINES, mean_title
from releases.formats.writing import spreadsheet_text
from releases.models import Release

CONTENT_TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "html": "text/html; charset=utf-8",
    "tex": "application/x-tex; charset=utf-8",
}
#: What the page is styled with; it must stay readable alone.
STYLES: Final = ("css/base.css", "css/components.css", "css/tables.css", "css/leaderboard.css")
SCRIPTS: Final = ("js/board-sort.js", "js/charts.js")
#: What draws the charts.
VEGA: Final = "js/vega.mjs"
CARD: Final = tuple(name for name in CARD_FIELDS if name != "name")


@dataclass(frozen=True, slots=True)
class Record:
    """One run's scores in one subset of one split."""

    run: Run
    split: str
    subset: Subset
    means: dict[str, float]
    """Measure key -> mean, from 0 to 1; without the measures that it has no figure of."""
    intervals: dict[str, tuple[float, float]]
    """Of the main measures."""


def file_name(release: Release, extension: str) -> str:
    """What the export is called: "inquire-v2-leaderboard.csv"."""
    return f"{release.slug}-leaderboard.{extension}"


def export(release: Release, extension: str) -> str:
    """The text of an export: "csv", "json", "html" or "tex".

    KeyError: another extension. NoSnapshot: the release has nothing to score on.
    """
    writers = {
        "csv": leaderboard_csv,
        "json": leaderboard_json,
        "html": leaderboard_html,
        "tex": leaderboard_tex,
    }
    return writers[extension](release)


def leaderboard_csv(release: Release) -> str:
    """A row for each run, split and subset; means and intervals from 0 to 1.

    `split` is val, test or both, `subset` "all" or such as "category:Human Impact", `queries` the
    number of queries averaged. The best possible re-ranks, of the kind "best", come after the runs
    of their task. AP@50_low and AP@50_high are the 95 % interval of AP@50. Texts that
    a spreadsheet would take for a formula have an apostrophe before them.
    NoSnapshot: see `export`.
    """
    tasks = [published_runs(release, task) for task in Run.Task.values]
    measures = list(dict.fromkeys(key for runs in tasks for key in runs.measures))
    spans = [key for task in Run.Task.values for key in HEADLINES[task]]
    columns = [
        *("release", "version", "task", "run", "name", "kind", "first_stage", "rerank_depth"),
        *(name for name in CARD if name != "description"),
        *("split", "subset", "queries"),
        *measures,
        *(f"{key}_{edge}" for key in spans for edge in ("low", "high")),
    ]
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for runs in tasks:
        for record in sorted(_records(runs), key=lambda one: one.run.kind == Run.Kind.BEST):
            row = {
                "release": release.name,
                "version": release.version,
                "task": runs.task,
                "run": record.run.pk,
                "split": record.split,
                "subset": record.subset.key,
                "queries": len(record.subset.queries),
                **_description(record.run),
                **record.means,
            }
            row.pop("description")
            for key, (low, high) in record.intervals.items():
                row |= {f"{key}_low": low, f"{key}_high": high}
            writer.writerow({key: _field(value) for key, value in row.items()})
    return file.getvalue()


def _field(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe before it."""
    return "" if value is None else spreadsheet_text(value) if isinstance(value, str) else value


def leaderboard_json(release: Release) -> str:
    """The runs of each task with their cards, and their scores by split and subset; likewise the
    best possible re-ranks, which compete with none, under "best_possible".

    NoSnapshot: see `export`.
    """
    content: dict[str, Any] = {
        "release": release.name,
        "version": release.version,
        "made_at": release.made_at.isoformat() if release.made_at else None,
        "confidence": 0.95,
        "tasks": {},
    }
    for task in Run.Task.values:
        runs = published_runs(release, task)
        scores: dict[int, dict[str, dict[str, Any]]] = {}
        for record in _records(runs):
            scores.setdefault(record.run.pk, {}).setdefault(record.split, {})[record.subset.key] = {
                "queries": len(record.subset.queries),
                "measures": record.means,
                "intervals": record.intervals,
            }
        groups = {split: _groups(runs, runs.board(split), split) for split in runs.splits}
        described: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
        for run in runs.runs:
            one = {"id": run.pk, **_description(run), "scores": scores.get(run.pk, {})}
            best = run.kind == Run.Kind.BEST
            if not best:
                one["groups"] = {split: found.get(run.pk, "") for split, found in groups.items()}
            described[best].append(one)
        content["tasks"][task] = {
            "measure_of_groups": {split: runs.main_measures(split)[0] for split in runs.splits},
            "runs": described[False],
            "best_possible": described[True],
        }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def leaderboard_html(release: Release) -> str:
    """One file that shows the tables and charts by itself, without a server or a connection.

    NoSnapshot: see `export`.
    """
    tasks = []
    for task, title in ((Run.Task.FULL, "Full ranking"), (Run.Task.RERANK, "Re-ranking")):
        runs = published_runs(release, task)
        splits = [
            _split_section(runs, split)
            for split in (TEST, VAL)
            if split in runs.splits and runs.board(split).runs
        ]
        tasks.append({"task": task, "title": title, "splits": splits})
    context = {
        "release": release,
        "tasks": tasks,
        "any_runs": any(one["splits"] for one in tasks),
        "styles": mark_safe("\n".join(_asset(name) for name in STYLES)),
        # Nothing in it may end the element that it stands in.
        "vega": mark_safe(_asset(VEGA).replace("</script", "<\\/script")),
        "scripts": mark_safe("\n".join(_asset(name) for name in SCRIPTS)),
    }
    return render_to_string("evaluation/leaderboard_export.html", context)


def _split_section(runs: BoardRuns, split: str) -> dict[str, Any]:
    measure = runs.main_measures(split)[0]
    choice = Choice(task=runs.task, split=split, measure=measure)
    tables = [page.shown_table(replace(choice, view=view), runs) for view in runs.groupings(split)]
    return {
        "split": split,
        "labels_hidden": runs.labels_hidden(split),
        "title": SPLITS[split],
        "choice": choice,
        "measure_title": mean_title(measure, runs.task),
        "tables": tables,
        **page.board_charts(choice, runs, tables[0]),
    }


def _records(runs: BoardRuns) -> Iterator[Record]:
    for split in sorted(runs.splits, key=(VAL, TEST, BOTH).index):
        board = runs.board(split)
        measures = runs.measures if board.summary is None else runs.main_measures(split)
        spans = {
            key: statistics.every_interval(runs, board, key)
            for key in runs.main_measures(split)
            if key in measures
        }
        for grouping in runs.groupings(split):
            for part in subsets(board.query_ids, runs.queries, grouping):
                if len(part.queries):
                    here = {key: found[part.key] for key, found in spans.items()}
                    yield from _part_records(runs, board, part, measures, here)


def _part_records(
    runs: BoardRuns,
    board: Board,
    part: Subset,
    measures: Sequence[str],
    spans: Mapping[str, Floats],
) -> Iterator[Record]:
    columns = measure_columns(measures, part)
    means = {column.measure: column_means(board, column) for column in columns}
    for row, place in enumerate(board.runs):
        known = [key for key in means if not np.isnan(means[key][row])]
        yield Record(
            run=runs.runs[place],
            split=board.split,
            subset=part,
            means={key: float(means[key][row]) for key in known},
            intervals={
                key: (float(spans[key][row][0]), float(spans[key][row][1]))
                for key in spans
                if key in known
            },
        )


def _groups(runs: BoardRuns, board: Board, split: str) -> dict[int, str]:
    letters = statistics.groups(runs, board, runs.main_measures(split)[0])
    return {runs.runs[board.runs[row]].pk: found for row, found in letters.items()}


def _description(run: Run) -> dict[str, Any]:
    """The description of a run's method."""
    return {
        "name": run.name,
        "kind": run.kind,
        "first_stage": run.first_stage.name if run.first_stage else None,
        "rerank_depth": run.rerank_depth,
        **{name: getattr(run, name) for name in CARD},
    }


def _asset(name: str) -> str:
    """The text of a style sheet or script; FileNotFoundError without it."""
    path = finders.find(name)
    if path is None:
        raise FileNotFoundError(f"{name} is not among the static files.")
    with open(path, encoding="utf-8") as file:
        return file.read()
