"""`manage.py migrate`, with a dump of the database before it is changed."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands.migrate import Command as DjangosCommand
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from annotator.backup.services import dump_write, file_name, prune
from annotator.postgres.programs import ProgramFailed
from core import __version__

PREFIX = "before-migration"
KEPT = 3


class Command(DjangosCommand):
    """Django's, which writes a backup of the database first if it holds anything."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--no-dump",
            action="store_true",
            help="change a database that holds data without a dump below VAR_DIR/backups",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        looks = options["plan"] or options["check_unapplied"]
        if not looks and not options["no_dump"] and _changes_data():
            path = Path(settings.VAR_DIR) / "backups" / file_name(PREFIX)
            try:
                dump_write(path)
            except (ProgramFailed, OSError) as error:
                raise CommandError(
                    f"The database was not changed, since it couldn't be dumped before: {error}"
                ) from error
            prune(path.parent, PREFIX, keep=KEPT)
            self.stdout.write(f"Before version {__version__} changes it, the database is in {path}")
        super().handle(*args, **options)


def _changes_data() -> bool:
    """Whether migrations are due on a database that some were applied to."""
    executor = MigrationExecutor(connection)
    due = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return bool(due and executor.loader.applied_migrations)
