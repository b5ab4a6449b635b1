"""`manage.py verify_backup FILE`."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator.backup.archive import BackupDamaged, archive_header, archive_verify
from core.outages import StorageAway


class Command(BaseCommand):
    """verify_backup FILE"""

    help = "Compare every part of a backup with its SHA-256; the exit status is 1 if one differs."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="a path, or s3://bucket/prefix/name")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            header = archive_header(options["file"])
            count = archive_verify(options["file"])
        except (BackupDamaged, OSError, StorageAway) as error:
            raise CommandError(str(error)) from error
        images = "with" if header["images"] else "without"
        self.stdout.write(
            f"{count} parts are whole: version {header['software']}, {header['moment']}, "
            f"{images} the files of images"
        )
