"""Marks beside runs, and finds of others than models on the page on bias: lists for extras."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from evaluation.runs.models import Run
from evaluation.scoring.bias import Tops
from releases.models import Release
from releases.snapshot.snapshot import Snapshot


class Mark(NamedTuple):
    """A badge of a run."""

    title: str
    about: str
    """A sentence that shows where one points at it."""


RUN_MARKS: list[Callable[[Release], Callable[[Run], Mark | None]]] = []
"""Each reads what it needs of a release once, and returns what marks its runs."""
OTHER_FINDS: list[Callable[[Snapshot], Tops]] = []
"""Each returns the images that somebody else than a model of the pool found, by a name and query
id: the page on bias scores the runs without them.
"""


def marks_of(release: Release, runs: Iterable[Run]) -> dict[int, list[Mark]]:
    """The marks of each run on a release, by the run's id."""
    makers = [make(release) for make in RUN_MARKS]
    return {run.pk: [mark for make in makers if (mark := make(run))] for run in runs}
