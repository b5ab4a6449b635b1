"""A release's leaderboard as LaTeX tables, one for each task and split."""

from __future__ import annotations

from typing import Final

from evaluation.leaderboard.board import BOTH
from evaluation.leaderboard.choice import Choice
from evaluation.leaderboard.selectors import published_runs
from evaluation.leaderboard.table import Row, Table, leaderboard_table
from evaluation.runs.models import Run
from releases.models import Release

#: What LaTeX takes for commands, as it prints.
_ESCAPES: Final = str.maketrans(
    {letter: f"\\{letter}" for letter in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


def leaderboard_tex(release: Release) -> str:
    """A table for each task and split with published runs: all queries, means as the page prints
    them, the best of a column bold. It needs the package booktabs.

    NoSnapshot: the release has nothing to score on.
    """
    tables = [f"% Leaderboard of {escaped(str(release))}. Needs \\usepackage{{booktabs}}.\n"]
    for task in Run.Task:
        runs = published_runs(release, task)
        for split in runs.splits:
            if split != BOTH and runs.board(split).runs:
                choice = Choice(task=task, split=split, measure=runs.main_measures(split)[0])
                table = leaderboard_table(choice, runs)
                tables.append(_table(table, f"{release}, {task.label.lower()}"))
    return "\n".join(tables)


def escaped(text: str) -> str:
    """A text that LaTeX prints as it is."""
    return text.translate(_ESCAPES)


def _table(table: Table, about: str) -> str:
    headers = ["Method", "Params (M)", *(header.title for header in table.headers)]
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{escaped(f'{about}: {table.title.lower()} ({table.queries})')}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(headers) - 1)}}}",
            r"\toprule",
            " & ".join(map(escaped, headers)) + r" \\",
            r"\midrule",
            *map(_row, table.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _row(row: Row) -> str:
    size = "–" if row.run.parameters is None else f"{row.run.parameters:,g}"
    figures = [
        rf"\textbf{{{figure.text}}}" if figure.best else figure.text for figure in row.figures
    ]
    return " & ".join([escaped(row.run.name), size, *figures]) + r" \\"
