"""The kinds of long work, and who does each.

A handler does one slice of a job: at least one unit of work, then more until `deadline` (of
`time.monotonic`). It commits its work and its progress together (`services.jobs.job_advance`), so
that a slice cut short anywhere is done again without a trace. It returns True when nothing is left
to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

StepHandler = Callable[[Any, float], bool]

HANDLERS: dict[str, StepHandler] = {}
_worker_counts: list[Callable[[], int]] = []


class UnknownJobKind(LookupError):
    """No handler is registered for a job's kind."""


class JobFailed(Exception):
    """What a handler raises to fail its job with a text for people."""


class JobCanceled(Exception):
    """The job was canceled while a slice was at work; its open transaction is undone."""


def job_handler(kind: str) -> Callable[[StepHandler], StepHandler]:
    """Register `step(job, deadline) -> finished` for a kind.

    Apps import their handlers in AppConfig.ready. Raises ValueError for a second handler.
    """

    def register(step: StepHandler) -> StepHandler:
        if HANDLERS.get(kind, step) is not step:
            raise ValueError(f"Two handlers for jobs of kind {kind!r}.")
        HANDLERS[kind] = step
        return step

    return register


def handler_for(kind: str) -> StepHandler:
    """Return the handler of a kind, or raise UnknownJobKind."""
    try:
        return HANDLERS[kind]
    except KeyError:
        raise UnknownJobKind(f"Nothing here knows how to do jobs of kind {kind!r}.") from None


def count_workers_by(count: Callable[[], int]) -> None:
    """Say how living workers are counted; only the project around the apps knows them."""
    _worker_counts[:] = [count]


def workers_alive() -> int:
    """Return how many workers showed a sign of life within the last minute; 1 where nobody
    counts them.
    """
    return _worker_counts[0]() if _worker_counts else 1
