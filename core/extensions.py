"""The required PostgreSQL extensions, and the oldest supported pgvector."""

from __future__ import annotations

import re
from typing import Any

from django.db import NotSupportedError

REQUIRED = ("vector", "pg_trgm", "unaccent")

# Earlier ones have index faults.
OLDEST_PGVECTOR = (0, 8, 4)


def version_tuple(version: str) -> tuple[int, ...]:
    """Return the numbers of a version such as "0.8.4"; a suffix that is no number ends it."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in numbers[0].split(".")) if numbers else ()


def pgvector_problem(installed: str | None) -> str | None:
    """Return what is wrong with an installed pgvector version, or None."""
    oldest = ".".join(map(str, OLDEST_PGVECTOR))
    if installed is None:
        return f"This server has no pgvector. Install {oldest} or newer on it, then migrate again."
    if version_tuple(installed) < OLDEST_PGVECTOR:
        return (
            f"This database has pgvector {installed}; {oldest} or newer is needed. "
            "Update pgvector on the server, then migrate again."
        )
    return None


def extensions_create(connection: Any) -> None:
    """Create the required extensions and update pgvector to the version that the server offers.

    Raises NotSupportedError, with a message for operators, if pgvector is missing or too
    old.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM pg_available_extensions WHERE name = ANY(%s)", [list(REQUIRED)]
        )
        available = {row[0] for row in cursor.fetchall()}
        if "vector" not in available:
            raise NotSupportedError(pgvector_problem(None))
        for name in REQUIRED:
            cursor.execute(f"CREATE EXTENSION IF NOT EXISTS {name}")
        cursor.execute(
            "SELECT installed_version, default_version "
            "FROM pg_available_extensions WHERE name = 'vector'"
        )
        installed, offered = cursor.fetchone()
        if pgvector_problem(installed) and not pgvector_problem(offered):
            cursor.execute("ALTER EXTENSION vector UPDATE")
            installed = offered
        problem = pgvector_problem(installed)
        if problem:
            raise NotSupportedError(problem)
