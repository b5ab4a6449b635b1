"""Advisory locks of PostgreSQL, with a number for each subject.

A session's advisory locks end with its connection, so a killed worker blocks nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from django.db import Error, connection

_SUBJECTS = {
    "job": 1,
    "embedding_model": 2,
    "corpus": 3,
    "job_kind": 4,
    "withdrawals": 5,
    "release": 6,
    "ranking": 7,
    "search": 8,
    "search_page": 9,
    "vector_index": 10,
    "embedding_ranges": 11,
    "embedding_range": 12,
    "device": 13,
    "embedding_models": 14,
    "query": 15,
    "annotator": 16,
    "query_ids": 17,
    "texts": 18,
    "backup": 19,
    "revisions": 20,
    "release_key": 21,
    "places": 22,
    "duplicates": 23,
    "import": 24,
    "migrations": 25,
    "matrix": 26,
}


def lock_key(subject: str, number: int = 0) -> int:
    """Return the 64-bit lock number of one thing; `number` below 2**48."""
    return (_SUBJECTS[subject] << 48) + number


@contextmanager
def try_session_lock(key: int) -> Iterator[bool]:
    """Hold `key` on this connection for the block if it is free; yields whether it was."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
        held = cursor.fetchone()[0]
    try:
        yield held
    finally:
        if held:
            _session_unlock(key)


@contextmanager
def session_lock(key: int) -> Iterator[None]:
    """Wait for `key` and hold it on this connection for the block, over any number of
    transactions.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [key])
    try:
        yield
    finally:
        _session_unlock(key)


def is_locked(key: int) -> bool:
    """Whether another session holds `key` now."""
    with try_session_lock(key) as free:
        return not free


def locked(keys: Collection[int]) -> set[int]:
    """Those of the keys that some session holds; unlike `is_locked`, this takes none of them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT key FROM (SELECT classid::bigint << 32 | objid::bigint AS key"
            " FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())) held"
            " WHERE key = ANY(%s)",
            [list(keys)],
        )
        return {key for (key,) in cursor.fetchall()}


def _session_unlock(key: int) -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [key])
    except Error:
        # The connection is gone or unusable, and ending it frees the lock.
        connection.close()


def transaction_lock(key: int, *, shared: bool = False) -> None:
    """Wait for `key` and hold it until the current transaction ends."""
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [key])
