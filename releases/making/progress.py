"""The steps of making a release, and how far each is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

from django.db import connection, connections

from core.jobs.models import Job
from core.jobs.services import job_advance

SECONDS_BETWEEN_REPORTS: Final = 0.5


@dataclass(slots=True)
class Step:
    """A part of the work."""

    title: str
    state: str = "waiting"
    """"waiting", "running" or "done"."""
    done: int = 0
    total: int | None = None
    """None while it isn't known."""


Report = Callable[[Sequence[Step]], None]


class Progress:
    """The steps of some work, in order, and how far each is.

    Reports when a step begins and ends, and now and then in between.
    """

    def __init__(self, titles: Sequence[str], report: Report | None = None) -> None:
        self.steps = [Step(title) for title in titles]
        self._report = report
        self._reported = 0.0

    @contextmanager
    def step(self, title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """Do a step in the block; gives a function that counts what is done. KeyError for a title
        that isn't among the steps."""
        step = {step.title: step for step in self.steps}[title]
        step.state, step.done, step.total = "running", 0, total
        self._notify()

        def count(more: int = 1) -> None:
            step.done += more
            if time.monotonic() - self._reported >= SECONDS_BETWEEN_REPORTS:
                self._notify()

        yield count
        step.state = "done"
        step.total = step.done = step.done if step.total is None else step.total
        self._notify()

    def _notify(self) -> None:
        self._reported = time.monotonic()
        if self._report is not None:
            self._report(self.steps)


@contextmanager
def job_report(job: Job | None) -> Iterator[Report]:
    """Give a function that records the steps in a job's result, at once visible to others.

    While a long transaction is open, a connection of its own records them. Counts of done steps
    never decrease, so work that kills its worker each time is given up. The function raises
    JobCanceled if the job was canceled.
    """
    nested = connection.in_atomic_block
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="progress") as thread:

        def record(steps: Sequence[Step]) -> None:
            if job is None:
                return
            done = sum(step.state == "done" for step in steps)
            values: dict[str, Any] = {
                "job": job,
                "done": max(0, done - job.done),
                "total": len(steps),
                "result": {"steps": [asdict(step) for step in steps]},
            }
            # A caller's transaction holds the job's row itself.
            if nested or not connection.in_atomic_block:
                job_advance(**values)
            else:
                thread.submit(job_advance, **values).result()

        try:
            yield record
        finally:
            thread.submit(connections.close_all).result()
