"""`manage.py backup FILE`."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator.backup.services import BackupRunning, backup_write, daily_backup
from annotator.postgres.programs import ProgramFailed
from core.commands.progress import Progress
from core.outages import StorageAway


class Command(BaseCommand):
    """backup FILE [--no-images]"""

    help = (
        "Write the database and the files that it names, as of one moment, into one file, while "
        "everything runs. The exit status is 1 if a file was missing or damaged; the others are in "
        "the backup."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", nargs="?", help="where to write it, such as a.tar or s3://bucket/a.tar"
        )
        parser.add_argument(
            "--no-images", action="store_true", help="without the files of copied images"
        )
        parser.add_argument(
            "--daily",
            action="store_true",
            help="into BACKUP_DIR, if none was written there within a day; keeps BACKUP_KEEP",
        )
        parser.add_argument("--quiet", action="store_true", help="show no progress")

    def handle(self, *args: Any, **options: Any) -> None:
        path: str | None = options["file"]
        if (path is None) != options["daily"]:
            raise CommandError("Name the file to write, or use --daily.")
        with Progress("files", quiet=options["quiet"]) as show:
            try:
                contents = (
                    daily_backup()
                    if path is None
                    else backup_write(path, images=not options["no_images"], report=show)
                )
            except (BackupRunning, ProgramFailed, OSError, StorageAway) as error:
                raise CommandError(f"No backup was written: {error}") from error
        if contents is None:
            self.stdout.write("No daily backup is due.")
            return
        self.stdout.write(f"{contents.files} files and the database: {contents.size_bytes} bytes")
        if contents.problem:
            raise CommandError(f"The backup is written, but of its files {contents.problem}")
