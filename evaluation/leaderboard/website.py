"""A release's leaderboard without its server: one web page that stands alone, or a folder of files.

Published runs only, both tasks, as researchers see them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from evaluation.leaderboard.board import BOTH, SPLITS
from evaluation.leaderboard.board_charts import board_charts
from evaluation.leaderboard.choice import TASKS, Choice, filters, measure_options, visible_measure
from evaluation.leaderboard.selectors import BoardRuns, published_runs
from evaluation.leaderboard.table import leaderboard_table, usual_columns
from evaluation.runs.models import Run
from evaluation.scoring.measures import mean_title
from releases.models import Release
from releases.selectors import release_file_entry
from releases.snapshot.snapshot import software

#: What the page is styled with; it must stay readable alone.
STYLES: Final = tuple(
    f"css/{name}.css" for name in ("base", "components", "forms", "tables", "leaderboard")
)
SCRIPTS: Final = ("js/board-sort.js", "js/board-filter.js", "js/charts.js")
#: What draws the charts.
VEGA: Final = "js/vega.mjs"
#: The release's file of who holds the rights in its images.
ATTRIBUTION: Final = "attribution.csv"


def leaderboard_html(release: Release) -> str:
    """One file that shows the tables and charts by itself, without a server or a connection.

    NoSnapshot: the release has nothing to score on.
    """
    return _page(
        release,
        styles=_assets(STYLES),
        # Nothing in it may end the element that it stands in.
        vega=mark_safe(_assets([VEGA]).replace("</script", "<\\/script")),
        scripts=_assets(SCRIPTS),
    )


def website_files(release: Release, tables: Mapping[str, str]) -> dict[str, str]:
    """The texts, by name, of the files of a folder that shows the leaderboard from a static server
    or from a disk. `tables` are more of its files, which its page links to.

    NoSnapshot: the release has nothing to score on.
    """
    return {
        "index.html": _page(release, tables=[*tables]),
        "board.css": _assets(STYLES),
        # A block, as browsers open no modules from a disk.
        "board.js": f'"use strict";\n{{\n{_assets(SCRIPTS)}\n}}\n',
        "vega.js": _assets([VEGA]),
        **tables,
    }


def _page(release: Release, **files: Any) -> str:
    boards = [published_runs(release, task) for task in Run.Task.values]
    # Without a log-in, what researchers may have.
    archive = release.archive.get("open") if release.labels_hidden else release.archive
    context = {
        "release": release,
        "sections": [
            _section(runs, split)
            for runs in boards
            for split in runs.splits
            if split != BOTH and runs.board(split).runs
        ],
        "filters": filters(Choice(), [run for runs in boards for run in runs.runs.values()]),
        "archive": archive,
        "attribution": release_file_entry(release=release, name=ATTRIBUTION),
        "software": software(),
        "address": settings.SITE_URL
        and settings.SITE_URL.rstrip("/") + reverse("release", args=[release.pk]),
        **files,
    }
    return render_to_string("evaluation/leaderboard_export.html", context)


def _section(runs: BoardRuns, split: str) -> dict[str, Any]:
    """A split's tables and charts. The first table has every measure, the usual ones first; the
    page begins with these alone."""
    measure = runs.main_measures(split)[0]
    choice = Choice(task=runs.task, split=split, measure=measure)
    usual = usual_columns(runs, split)
    seen = visible_measure(runs, split, measure)
    columns = tuple(dict.fromkeys([*usual, *seen.measures]))
    table = leaderboard_table(replace(choice, columns=columns), runs)
    parts = [view for view in runs.groupings(split) if view != choice.view]
    return {
        "id": f"{runs.task}-{split}",
        "labels_hidden": seen.labels_hidden,
        "title": f"{TASKS[runs.task]}, {SPLITS[split].lower()}",
        "choice": choice,
        "measure_title": mean_title(measure, runs.task),
        "table": table,
        "shown": len(usual),
        "columns": usual,
        "column_options": measure_options(columns, runs.task),
        "parts": [leaderboard_table(replace(choice, view=view), runs) for view in parts],
        **board_charts(choice, runs, table),
    }


def _assets(names: Iterable[str]) -> SafeString:
    """The texts of style sheets or scripts, one after the other; FileNotFoundError without one."""
    texts = []
    for name in names:
        path = finders.find(name)
        if path is None:
            raise FileNotFoundError(f"{name} is not among the static files.")
        texts.append(Path(path).read_text(encoding="utf-8"))
    return mark_safe("\n".join(texts))
