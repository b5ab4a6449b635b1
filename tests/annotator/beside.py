"""Databases beside the tests' own, on the same server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from retrieval.images import files
from tests.databases import copy_database, cursor_on, execute
from tests.settings import PROCESS


def ask(name: str, statement: str) -> list[Any]:
    """The rows of a statement on a database of the tests' server; none of one that returns none."""
    with cursor_on(name) as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


@contextmanager
def database_beside(name: str, template: str = "template1") -> Iterator[str]:
    """A database while the block runs; its name, which begins with `name`."""
    name = f"{name}_{PROCESS}"
    copy_database(name, template)
    try:
        yield name
    finally:
        execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def working_on(name: str) -> Iterator[None]:
    """Have this process's Django, in all its threads, work on another database, without what it
    remembers of the one before: where roots of images are.
    """
    before = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = name
    files._locations.clear()
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = before
        files._locations.clear()
