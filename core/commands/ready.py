"""A check of management commands that the database is migrated."""

from __future__ import annotations

from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from core.commands import command


def require_migrated() -> None:
    """Raise CommandError, with what to do, unless the database has every table that we know."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise CommandError(
            "The database is not set up, or is older than this program. "
            f"Run {command('migrate')} first (“serve” does it too)."
        )
