"""Marks beside runs, a list for extras."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from evaluation.runs.models import Run
from releases.models import Release


class Mark(NamedTuple):
    """A badge of a run."""

    title: str
    about: str
    """A sentence that shows where one points at it."""


RUN_MARKS: list[Callable[[Release], Callable[[Run], Mark | None]]] = []
"""Each reads what it needs of a release once, and returns what marks its runs."""


def marks_of(release: Release, runs: Iterable[Run]) -> dict[int, list[Mark]]:
    """The marks of each run on a release, by the run's id."""
    makers = [make(release) for make in RUN_MARKS]
    return {run.pk: [mark for make in makers if (mark := make(run))] for run in runs}
