"""Calls on database connections of their own, beside the test or beside each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from django.db import connection, connections

#: How many transactions of a database wait for the end of another. `pg_locks` has the waits of all
#: databases, also of other processes' tests.
WAITING = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    " AND backend_type = 'client backend'"
)


def waiting() -> int:
    """How many transactions of this process's database wait for the end of another."""
    with connection.cursor() as cursor:
        # Else a transaction sees again what it saw first.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(WAITING)
        return int(cursor.fetchone()[0])


@contextmanager
def meanwhile(call: Callable[[], Any]) -> Iterator[list[Any]]:
    """Run a call in a thread beside the block, and wait for it after the block; what it returned or
    raised comes into the list.
    """
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(call())
        except Exception as error:
            results.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield results
    finally:
        thread.join(60)
    assert not thread.is_alive(), "deadlock"


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Run the calls in threads that start together; returns what each returned or raised."""
    barrier = threading.Barrier(len(calls))

    def start(call: Callable[[], Any]) -> Any:
        barrier.wait()
        return call()

    with ExitStack() as threads:
        results = [threads.enter_context(meanwhile(partial(start, call))) for call in calls]
    return [result for [result] in results]
