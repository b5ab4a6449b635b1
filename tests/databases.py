"""The session's PostgreSQL server, and copies of a migrated database on it."""

from __future__ import annotations

import psycopg2
from django.core.management import call_command
from django.db import connection

from annotator.postgres.embedded import embedded_postgres
from annotator.postgres.guardian import PORT, locked
from tests.settings import SESSION_DIR

MIGRATED = "migrated"
#: What `post_migrate` writes, which is the same after every test.
KEPT = {"django_content_type", "auth_permission"}


def use_copy(name: str) -> None:
    """Make this process's Django work on a new copy of the migrated database."""
    _make_migrated()
    _execute(f"CREATE DATABASE {name} TEMPLATE {MIGRATED}")
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


def _make_migrated() -> None:
    """Start the server and make the database that is copied, where no other process has."""
    embedded_postgres(SESSION_DIR).ensure()
    made = SESSION_DIR / MIGRATED
    with locked(SESSION_DIR / "template.lock"):
        if made.exists():
            return
        # What a test leaves need not outlive the machine.
        _execute(
            *(f"ALTER SYSTEM SET {name} = off" for name in ("fsync", "full_page_writes")),
            "ALTER SYSTEM SET synchronous_commit = off",
            "SELECT pg_reload_conf()",
            f"CREATE DATABASE {MIGRATED}",
        )
        connection.settings_dict["NAME"] = MIGRATED
        call_command("migrate", verbosity=0)
        connection.close()
        made.touch()


def _execute(*statements: str) -> None:
    known = connection.settings_dict
    server = psycopg2.connect(host=known["HOST"], port=PORT, user=known["USER"], dbname="postgres")
    server.autocommit = True
    with server.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    server.close()
