"""`manage.py migrate`, which dumps the database before it changes it, and lets requests pass."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.core.management.commands.migrate import Command as DjangosCommand
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from psycopg2.errors import DeadlockDetected, LockNotAvailable

from annotator.backup.services import dump_write, file_name, prune
from annotator.postgres.programs import ProgramFailed
from annotator.upgrades import TOO_OLD, is_too_old
from core import __version__
from core.locks import lock_key, try_session_lock

PREFIX = "before-migration"
KEPT = 3
# Requests for a table queue behind a migration that waits for its lock, at most this long.
LOCK_SECONDS = 2
TRIES = 60
PAUSE_SECONDS = 5.0


class Command(DjangosCommand):
    """Django's, which writes a backup of the database first if it holds anything, lets one process
    migrate at a time, and gives up waiting for a lock that somebody holds, to try again.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--no-dump",
            action="store_true",
            help="change a database that holds data without a dump below VAR_DIR/backups",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["plan"] or options["check_unapplied"]:
            super().handle(*args, **options)
            return
        if is_too_old(app for app, _ in MigrationExecutor(connection).loader.applied_migrations):
            raise CommandError(f"The database {TOO_OLD}.")
        for _ in range(TRIES):
            try:
                with _alone():
                    if not options["no_dump"] and _changes_data():
                        self._dump()
                        options["no_dump"] = True
                    # Each migration is a transaction: the next try goes on from there.
                    super().handle(*args, **options)
                _set_lock_timeout(0)
                return
            except OperationalError as error:
                if not isinstance(error.__cause__, LockNotAvailable | DeadlockDetected):
                    raise
                trouble = str(error).splitlines()[0]
            # Django leaves its transaction open where the last statements of a migration fail.
            connection.close()
            connection.connect()
            self.stdout.write(f" waits: {trouble}")
            time.sleep(PAUSE_SECONDS)
        raise CommandError(
            f"Another session holds a lock that a migration needs ({trouble}); pg_stat_activity "
            "tells whose transaction is old. Applied migrations stay: run migrate again."
        )

    def _dump(self) -> None:
        path = Path(settings.VAR_DIR) / "backups" / file_name(PREFIX)
        try:
            dump_write(path)
        except (ProgramFailed, OSError) as error:
            raise CommandError(
                f"The database was not changed, since it couldn't be dumped before: {error}"
            ) from error
        prune(path.parent, PREFIX, keep=KEPT)
        self.stdout.write(f"Before version {__version__} changes it, the database is in {path}")

    def migration_progress_callback(
        self, action: str, migration: Any = None, fake: bool = False
    ) -> None:
        if action in ("apply_start", "unapply_start"):
            # Without a transaction indexes are built concurrently: that waits without holding up
            # anybody, and leaves an invalid index where it gives up.
            _set_lock_timeout(LOCK_SECONDS if migration.atomic else 0)
        super().migration_progress_callback(action, migration, fake)


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the lock of those who migrate.

    Asked again and again, since a concurrent index waits for every statement that runs, also for
    one that waits for this lock.
    """
    while True:
        with try_session_lock(lock_key("migrations")) as held:
            if held:
                yield
                return
        time.sleep(1)


def _set_lock_timeout(seconds: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{seconds}s"])


def _changes_data() -> bool:
    """Whether migrations are due on a database that some were applied to."""
    executor = MigrationExecutor(connection)
    due = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return bool(due and executor.loader.applied_migrations)
