"""What a line of the logs carries beside its message: the ids of the request and of the job that it
was written in, and the form of a JSON object.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from pythonjsonlogger.json import JsonFormatter

request_id: Final[ContextVar[str | None]] = ContextVar("request_id", default=None)
job_id: Final[ContextVar[int | None]] = ContextVar("job_id", default=None)
#: Others that libraries add may name people: Django's `request` has the query string.
FIELDS: Final = frozenset(
    {
        *("time", "level", "logger", "message", "exception", "stack_info"),
        *("request_id", "job_id", "method", "view", "status", "milliseconds"),
    }
)


@contextmanager
def lines_of_job(number: int) -> Iterator[None]:
    """Lines that this thread writes within the block carry the job's id."""
    token = job_id.set(number)
    try:
        yield
    finally:
        job_id.reset(token)


class Ids(logging.Filter):
    """Adds to a record the request id and the job id that there are, and both as the text `ids`."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Pass every record."""
        ids = {"request_id": request_id.get(), "job_id": job_id.get()}
        present = {name: value for name, value in ids.items() if value is not None}
        vars(record).update(present)
        record.ids = "".join(f" {name}={value}" for name, value in present.items())
        return True


class JsonLines(JsonFormatter):
    """A JSON object a line, of FIELDS alone."""

    def __init__(self) -> None:
        names = {"levelname": "level", "name": "logger", "exc_info": "exception"}
        super().__init__(["levelname", "name", "message"], rename_fields=names, timestamp="time")

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        """Leave out what isn't in FIELDS."""
        return {name: value for name, value in log_data.items() if name in FIELDS}
