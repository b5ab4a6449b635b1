"""The command line: `inquire-annotator`, `python -m annotator` and `manage.py` are the same."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command named on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit(
            f"Django cannot be imported ({error}). Run `make demo` once, "
            "or activate the virtual environment: . .venv/bin/activate"
        ) from error
    try:
        execute_from_command_line(sys.argv)
    except Exception as error:
        from psycopg2.errors import UndefinedColumn, UndefinedTable

        from core.commands import command
        from core.outages import causes, outage_of

        missing = any(isinstance(one, UndefinedColumn | UndefinedTable) for one in causes(error))
        if missing and not _migrated():
            raise SystemExit(
                "The database is not set up, or is older than this program. "
                f"Run {command('migrate')} first (“serve” does it too)."
            ) from None
        outage = outage_of(error)
        if outage is None:
            raise
        raise SystemExit(f"{outage.sentence} {str(error).strip()}") from None


def _migrated() -> bool:
    """Whether the database has all migrations of this program."""
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


if __name__ == "__main__":
    main()
