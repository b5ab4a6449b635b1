"""The registry of job kinds and their handlers.

A handler does one slice of a job: at least one unit of work, then more until `deadline` (of
`time.monotonic`). It commits its work and its progress together (`job_advance`), so
that an interrupted slice can be repeated. It returns True when nothing is left to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.errors import Conflict, Refused

StepHandler = Callable[[Any, float], bool]

HANDLERS: dict[str, StepHandler] = {}
_worker_counts: list[Callable[[], int]] = []


class UnknownJobKind(Refused):
    """No handler is registered for a job's kind."""


class JobFailed(Conflict):
    """Raised by a handler to fail its job, with a message for people. Any Refused does so."""


class JobCanceled(Exception):
    """The job was canceled during a slice, whose open transaction is rolled back."""


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
    """Register the function that counts living workers; only the project knows them."""
    _worker_counts[:] = [count]


def workers_alive() -> int:
    """Return how many workers were alive within the last minute; 1 if they aren't counted."""
    return _worker_counts[0]() if _worker_counts else 1
