"""A release's leaderboard as CSV, JSON, LaTeX, one web page and a website: published runs only."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from core.csv_rows import spreadsheet_text
from core.files import atomic_directory
from evaluation.leaderboard import certified, statistics
from evaluation.leaderboard.board import ALL, BOTH, TEST, VAL, Subset
from evaluation.leaderboard.latex import leaderboard_tex
from evaluation.leaderboard.selectors import BoardRuns, published_runs
from evaluation.leaderboard.website import leaderboard_html, website_files
from evaluation.runs.computation import gflops_per_query
from evaluation.runs.models import Run
from evaluation.runs.services import CARD_FIELDS
from evaluation.scoring.hidden_labels import PRIVATE, PUBLIC
from evaluation.scoring.measures import HEADLINES, parse_measure
from evaluation.scoring.missing import has_range
from releases.making.files import write_archive
from releases.models import Release

CONTENT_TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "html": "text/html; charset=utf-8",
    "tex": "application/x-tex; charset=utf-8",
    "zip": "application/zip",
}
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
    ranges: dict[str, tuple[float, float]]
    """Of the main measures that have one, over all queries: with what labels may miss."""


def file_name(release: Release, extension: str) -> str:
    """What the export is called: "inquire-v2-leaderboard.csv"."""
    return f"{release.slug}-leaderboard.{extension}"


def export(release: Release, extension: str) -> str | bytes:
    """An export: the text of "csv", "json", "html" or "tex", or the bytes of "zip".

    KeyError: another extension. NoSnapshot: the release has nothing to score on.
    """
    writers: Mapping[str, Callable[[Release], str | bytes]] = {
        "csv": leaderboard_csv,
        "json": leaderboard_json,
        "html": leaderboard_html,
        "tex": leaderboard_tex,
        "zip": website_archive,
    }
    return writers[extension](release)


def website_write(release: Release, directory: Path, *, replace: bool = False) -> list[str]:
    """Write the leaderboard as a folder that any static server, or none, can show, with its tables
    as CSV and JSON; returns the names of the files. With `replace` the folder may hold such files.

    NoSnapshot: see `export`. TargetRefused: the folder holds other things. OSError.
    """
    tables = {
        "leaderboard.csv": leaderboard_csv(release),
        "leaderboard.json": leaderboard_json(release),
    }
    files = website_files(release, tables)
    with atomic_directory(directory, replace=replace, replaceable=files) as folder:
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8", newline="")
    return sorted(files)


def website_archive(release: Release) -> bytes:
    """The folder of `website_write` in a ZIP archive. NoSnapshot: see `export`."""
    root = Path(file_name(release, "zip")).stem
    with TemporaryDirectory() as place:
        folder, archive = Path(place) / root, Path(place) / "archive.zip"
        write_archive(archive, folder, website_write(release, folder), root=root)
        return archive.read_bytes()


def leaderboard_csv(release: Release) -> str:
    """A row for each run, split and subset; means and intervals from 0 to 1.

    `split` is val, test or both, or public or private for a half of test, `subset` "all" or such as
    "category:Human Impact", `queries` the number of queries averaged. The best possible re-ranks,
    of the kind "best", come after the runs of their task. AP@50_low and AP@50_high are the 95 %
    interval of AP@50, AP@50_labels_low and AP@50_labels_high its range with what labels may miss.
    Texts that a spreadsheet would take for a formula have an apostrophe before them.
    NoSnapshot: see `export`.
    """
    tasks = [published_runs(release, task) for task in Run.Task.values]
    measures = list(dict.fromkeys(key for runs in tasks for key in runs.measures))
    spans = [key for task in Run.Task.values for key in HEADLINES[task]]
    columns = [
        *("release", "version", "task", "run", "name", "kind", "first_stage", "rerank_depth"),
        *(name for name in CARD if name != "description"),
        "gflops_per_query",
        *("split", "subset", "queries"),
        *measures,
        *(f"{key}_{edge}" for key in spans for edge in ("low", "high")),
        *(
            f"{key}_labels_{edge}"
            for key in spans
            if has_range(parse_measure(key))
            for edge in ("low", "high")
        ),
    ]
    file = io.StringIO()
    writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
    writer.writeheader()
    for runs in tasks:
        for record in sorted(_records(runs), key=lambda record: record.run.kind == Run.Kind.BEST):
            row = {
                "release": release.name,
                "version": release.version,
                "task": runs.task,
                "run": record.run.pk,
                "split": record.split,
                "subset": record.subset.key,
                "queries": len(record.subset.queries),
                **_description(record.run, release),
                **record.means,
            }
            row.pop("description")
            for key, (low, high) in record.intervals.items():
                row |= {f"{key}_low": low, f"{key}_high": high}
            for key, (low, high) in record.ranges.items():
                row |= {f"{key}_labels_low": low, f"{key}_labels_high": high}
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
                **({"with_missing_labels": record.ranges} if record.ranges else {}),
            }
        groups = {
            split: statistics.groups(runs.board(split), runs.main_measures(split)[0])
            for split in runs.splits
        }
        described: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
        for pk, run in runs.runs.items():
            method = {"id": pk, **_description(run, release), "scores": scores.get(pk, {})}
            best = run.kind == Run.Kind.BEST
            if not best:
                method["groups"] = {split: of_runs.get(pk, "") for split, of_runs in groups.items()}
            described[best].append(method)
        content["tasks"][task] = {
            "measure_of_groups": {split: runs.main_measures(split)[0] for split in runs.splits},
            "missing_labels": {
                split: {"at_most": found.most, "confidence": found.confidence}
                for split in runs.splits
                if (found := certified.missing_on(runs.board(split), runs, HEADLINES[task][0]))
            },
            "runs": described[False],
            "best_possible": described[True],
        }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _records(runs: BoardRuns) -> Iterator[Record]:
    for split in sorted(runs.splits, key=(VAL, TEST, BOTH, PUBLIC, PRIVATE).index):
        board = runs.board(split)
        main = runs.main_measures(split)
        measures = main if board.summary is not None else runs.measures
        intervals = {key: statistics.every_interval(board, key) for key in main if key in measures}
        ranges = {key: certified.mean_ranges(board, runs, key) for key in main}
        for part in (part for name in runs.groupings(split) for part in board.subsets(name)):
            if not len(part.queries):
                continue
            means = {key: board.means(key, part) for key in measures}
            for run in board.runs:
                known = {key: of_runs[run] for key, of_runs in means.items() if run in of_runs}
                yield Record(
                    run=runs.runs[run],
                    split=split,
                    subset=part,
                    means=known,
                    intervals={
                        key: of_parts[part.key][run]
                        for key, of_parts in intervals.items()
                        if key in known and part.key in of_parts
                    },
                    ranges={
                        key: of_runs[run].mean
                        for key, of_runs in ranges.items()
                        if part.grouping == ALL and run in of_runs
                    },
                )


def _description(run: Run, release: Release) -> dict[str, Any]:
    """The description of a run's method."""
    return {
        "name": run.name,
        "kind": run.kind,
        "first_stage": run.first_stage.name if run.first_stage else None,
        "rerank_depth": run.rerank_depth,
        **{name: getattr(run, name) for name in CARD},
        "gflops_per_query": gflops_per_query(run, release),
    }
