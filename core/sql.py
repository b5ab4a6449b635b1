"""Statements that Django's queries can't express."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection


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
