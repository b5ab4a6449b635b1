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
        from django.core.management import CommandError
        from psycopg2.errors import UndefinedColumn, UndefinedTable

        from core.commands.ready import require_migrated
        from core.outages import causes, outage_of

        if any(isinstance(one, UndefinedColumn | UndefinedTable) for one in causes(error)):
            try:
                require_migrated()
            except CommandError as behind:
                raise SystemExit(str(behind)) from None
        outage = outage_of(error)
        if outage is None:
            raise
        raise SystemExit(f"{outage.sentence} {str(error).strip()}") from None


if __name__ == "__main__":
    main()
