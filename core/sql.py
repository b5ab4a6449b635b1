"""What Django's queries can't express: statements, and reading as of one moment."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from core.binary_copy import parse_rows, row_layout


def fetch_all(sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
    """Execute one statement and return all its rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def copy(
    statement: str, file: Any, values: Sequence[Any] | None = None, *, size: int = 8192
) -> None:
    """Execute one COPY from or to a binary or text file, with Django's errors: those of psycopg2
    would not be known for outages. `size` is that of the pieces that are read.
    """
    with connection.wrap_database_errors, connection.cursor() as cursor:
        cursor.copy_expert(cursor.mogrify(statement, values).decode(), file, size)


def copied_rows(
    query: str, values: Sequence[Any], names: Sequence[str], *, dimension: int | None = None
) -> NDArray[np.void]:
    """Return the rows (n,) of a query for integers of these names and, if a dimension is given, a
    halfvec named "vector"; they are mapped from a temporary file.
    """
    with tempfile.TemporaryFile() as target:
        copy(f"COPY ({query}) TO STDOUT (FORMAT binary)", target, values)
        target.flush()
        data = mmap.mmap(target.fileno(), 0, access=mmap.ACCESS_READ)
    return parse_rows(memoryview(data), row_layout(names, dimension=dimension))


@contextmanager
def repeatable_read() -> Iterator[None]:
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
