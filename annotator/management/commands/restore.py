"""`manage.py restore FILE`."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator.backup.archive import BackupDamaged
from annotator.backup.services import RestoreRefused, backup_restore
from annotator.postgres.programs import ProgramFailed
from core.commands import command
from core.commands.progress import Progress
from core.outages import StorageAway


class Command(BaseCommand):
    """restore FILE"""

    help = (
        "Check a backup and bring its files into VAR_DIR and its database into the one of the "
        "settings, which must be empty. A restore that was cut short is done again."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="a path, or s3://bucket/prefix/name")
        parser.add_argument("--quiet", action="store_true", help="show no progress")

    def handle(self, *args: Any, **options: Any) -> None:
        with Progress("files", quiet=options["quiet"]) as show:
            try:
                header = backup_restore(options["file"], report=show)
            except (BackupDamaged, RestoreRefused, ProgramFailed, OSError, StorageAway) as error:
                raise CommandError(f"Nothing was restored: {error}") from error
        self.stdout.write(
            f"Restored the state of {header['moment']}. {command('serve')} brings the database to "
            "this version and starts; people log in again."
        )
