"""Reading from a read-only replica of the database, `DATABASES["replica"]`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, connections

REPLICA: Final = "replica"
_primary: ContextVar[Any] = ContextVar("primary", default=None)


@contextmanager
def reading_replica() -> Iterator[None]:
    """Have all that this thread does with the database in the block, by models and by `connection`,
    done on the replica, which refuses to write.
    """
    kept = _primary.set(connections[DEFAULT_DB_ALIAS])
    try:
        with _working_on(connections[REPLICA]):
            yield
    finally:
        _primary.reset(kept)


def replica_is_read() -> bool:
    """Whether this is within `reading_replica`."""
    return _primary.get() is not None


@contextmanager
def on_primary() -> Iterator[None]:
    """Within `reading_replica`, work on the primary for the block; elsewhere this changes nothing.

    For what writes, and for what must be as new as it can be.
    """
    with _working_on(_primary.get() or connections[DEFAULT_DB_ALIAS]):
        yield


@contextmanager
def _working_on(chosen: Any) -> Iterator[None]:
    before = connections[DEFAULT_DB_ALIAS]
    # Of this thread alone; the ORM, `atomic` and `connection` look it up here each time.
    connections[DEFAULT_DB_ALIAS] = chosen
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = before
