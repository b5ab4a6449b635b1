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
    "people": 29,
    "model_in_use": 30,
    "importing": 31,
    "shown": 32,
}


def lock_key(subject: str, number: int = 0) -> int:
    """Return the 64-bit lock number of one thing; `number` below 2**48."""
    return (_SUBJECTS[subject] << 48) + number


@contextmanager
def try_session_lock(key: int, *, shared: bool = False) -> Iterator[bool]:
    """Hold `key` on this connection for the block if it is free; yields whether it was. `shared`
    holds it beside others that do so.
    """
    held = session_lock_try(key, shared=shared)
    try:
        yield held
    finally:
        if held:
            session_unlock(key, shared=shared)


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
        session_unlock(key)


def is_locked(key: int) -> bool:
    """Whether a session holds `key` now; this takes it from nobody, also behind a PgBouncer."""
    return key in _held()


def locked(keys: Collection[int]) -> set[int]:
    """Those of the keys that some session holds now."""
    return set(keys) & _held()


def _held() -> set[int]:
    with connection.cursor() as cursor:
        # pg_locks has both halves of a key as unsigned 32-bit integers.
        cursor.execute(
            "SELECT l.classid::bigint << 32 | l.objid::bigint FROM pg_locks l "
            "WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
            " AND l.database = (SELECT d.oid FROM pg_database d"
            "                   WHERE d.datname = current_database())"
        )
        return {key for (key,) in cursor.fetchall()}


def session_lock_try(key: int, *, shared: bool = False) -> bool:
    """Take `key` for this connection if it is free; whether it was. `shared` takes it beside others
    that do so.
    """
    function = "pg_try_advisory_lock_shared" if shared else "pg_try_advisory_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [key])
        return bool(cursor.fetchone()[0])


def session_unlock(key: int, *, shared: bool = False) -> None:
    """Release what `session_lock_try` took."""
    function = "pg_advisory_unlock_shared" if shared else "pg_advisory_unlock"
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {function}(%s)", [key])
    except Error:
        # The connection is gone or unusable, and ending it frees the lock.
        connection.close()


def transaction_lock(key: int, *, shared: bool = False) -> None:
    """Wait for `key` and hold it until the current transaction ends."""
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [key])
