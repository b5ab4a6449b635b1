"""Reading the database as of one moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def snapshot() -> Iterator[None]:
    """A transaction that sees the database as of one moment.

    Within a caller's transaction it sees what that one sees. OperationalError: a row that the block
    changes or locks was changed by somebody else since.
    """
    nested = connection.in_atomic_block
    with transaction.atomic():
        if not nested:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield
