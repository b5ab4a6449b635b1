"""A release's leaderboard as LaTeX tables, one for each task and split."""

from __future__ import annotations

from typing import Final

from evaluation.leaderboard.choice import Choice
from evaluation.leaderboard.page import Line, Shown, shown_table
from evaluation.leaderboard.selectors import published_runs
from evaluation.leaderboard.tables import TEST, VAL
from evaluation.runs.models import Run
from releases.models import Release

#: What LaTeX takes for commands, as it prints.
_ESCAPES: Final = str.maketrans(
    {one: f"\\{one}" for one in "&%$#_{}"}
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
        for split in (TEST, VAL):
            if split in runs.splits and runs.board(split).runs:
                choice = Choice(task=task, split=split, measure=runs.main_measures(split)[0])
                tables.append(_table(shown_table(choice, runs), f"{release}, {task.label.lower()}"))
    return "\n".join(tables)


def escaped(text: str) -> str:
    """A text that LaTeX prints as it is."""
    return text.translate(_ESCAPES)


def _table(shown: Shown, about: str) -> str:
    headers = ["Method", "Params (M)", *(header.title for header in shown.headers)]
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{escaped(f'{about}: {shown.title.lower()} ({shown.queries})')}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(headers) - 1)}}}",
            r"\toprule",
            " & ".join(map(escaped, headers)) + r" \\",
            r"\midrule",
            *(_row(line) for line in shown.lines),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _row(line: Line) -> str:
    size = "–" if line.run.parameters is None else f"{line.run.parameters:,g}"
    figures = [rf"\textbf{{{one.text}}}" if one.best else one.text for one in line.figures]
    return " & ".join([escaped(line.run.name), size, *figures]) + r" \\"
