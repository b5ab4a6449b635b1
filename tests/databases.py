"""The session's PostgreSQL server, and copies of migrated databases on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg2
from django.apps import apps
from django.db import connection

from annotator.postgres.embedded import embedded_postgres
from annotator.postgres.guardian import DATABASE_USER, Layout, locked
from tests import ROOT
from tests.keeping import kept
from tests.processes import database_url
from tests.settings import SESSION_DIR

MIGRATED = "migrated"
#: What `post_migrate` writes, which is the same after every test.
KEPT = {"django_content_type", "auth_permission"}


def start_server() -> None:
    """Start the session's server, with a migrated database, where no other process has."""
    server = embedded_postgres(SESSION_DIR)
    server.enter()
    with locked(SESSION_DIR / "run" / "template.lock"):
        data = Layout(SESSION_DIR).data
        if not data.exists():
            copy_data(kept_data(), data)
    server.ensure()


def kept_data() -> Path:
    """PostgreSQL's data with a migrated database, as long as migrations and server are the same."""
    sources = [
        path
        for app in sorted(apps.get_app_configs(), key=lambda one: one.name)
        for path in sorted((Path(app.path) / "migrations").glob("*.py"))
    ]

    def make(draft: Path) -> Path:
        _migrate(draft)
        return Layout(draft).data

    return kept("postgres", version("embedded-postgres"), sources, make)


def copy_data(source: Path, target: Path) -> None:
    """Copy the data of a server that doesn't run; its files may be another user's."""
    subprocess.run(["cp", "-a", "--reflink=auto", source, target], check=True)


def copy_database(name: str, template: str = MIGRATED) -> None:
    """Make a database of the session's server anew; who uses one of this name is disconnected."""
    execute(
        f"DROP DATABASE IF EXISTS {name} WITH (FORCE)",
        f"CREATE DATABASE {name} TEMPLATE {template}",
    )


def use_copy(name: str) -> None:
    """Make this process's Django work on a new copy of the migrated database."""
    start_server()
    copy_database(name)
    connection.close()
    connection.settings_dict["NAME"] = name


def empty_written_tables(_case: object) -> None:
    """Empty the tables that have rows, as Django does with all after a test that commits: of these
    there are many more, and each costs PostgreSQL new files.
    """
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    tables = sorted(set(names) - KEPT)
    with connection.cursor() as cursor:
        cursor.execute(
            " UNION ALL ".join(
                f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in tables
            )
        )
        written = [table for (table,) in cursor.fetchall()]
        if written:
            cursor.execute(f"TRUNCATE {', '.join(written)} CASCADE")


def server_url(name: str, folder: Path = SESSION_DIR) -> str:
    """The DATABASE_URL of a database on the server of a state folder, the session's."""
    host = Layout(folder).socket_dir
    return database_url({"USER": DATABASE_USER, "HOST": host, "NAME": name})


@contextmanager
def cursor_on(name: str, folder: Path = SESSION_DIR) -> Iterator[Any]:
    """A cursor on a database of the same, where each statement commits."""
    server = psycopg2.connect(server_url(name, folder))
    server.autocommit = True
    with closing(server), server.cursor() as cursor:
        yield cursor


def execute(*statements: str, folder: Path = SESSION_DIR) -> None:
    """Run statements outside a transaction on the server of a state folder, the session's."""
    with cursor_on("postgres", folder) as cursor:
        for statement in statements:
            cursor.execute(statement)


def _migrate(folder: Path) -> None:
    """Make the database that is copied, with a server of its own in a folder."""
    server = embedded_postgres(folder)
    server.ensure()
    # What a test leaves need not outlive the machine.
    execute(
        *(f"ALTER SYSTEM SET {name} = off" for name in ("fsync", "full_page_writes")),
        "ALTER SYSTEM SET synchronous_commit = off",
        "SELECT pg_reload_conf()",
        f"CREATE DATABASE {MIGRATED}",
        folder=folder,
    )
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "-v0"],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "annotator.settings",
            "DATABASE_URL": server_url(MIGRATED, folder),
        },
        check=True,
    )
    server.leave(wait=True)
