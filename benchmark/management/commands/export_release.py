"""`manage.py export_release NAME DIR`."""

from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from benchmark.directories import TargetRefused
from benchmark.services import ReleaseUnusable, release_export


class Command(BaseCommand):
    """Make a release of the completed queries, or give out one that is made."""

    help = (
        "Write the release NAME to the directory DIR: the completed queries and their relevant "
        "images in INQUIRE's files, and every judgment. A new name makes a release of this "
        "moment; a release that exists is written as it was made."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the release's name")
        parser.add_argument(
            "directory", type=Path, metavar="dir", help="a new or empty directory for the files"
        )
        parser.add_argument(
            "--force", action="store_true", help="replace a directory that holds a release"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        directory = options["directory"]
        try:
            release, made = release_export(
                name=options["name"], directory=directory, replace=options["force"]
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        except (TargetRefused, ReleaseUnusable) as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"Can't write {directory}: {error}") from error
        if not made:
            self.stdout.write(
                f"Release {release.name!r} was made on {release.made_at:%Y-%m-%d %H:%M} UTC and "
                "never changes: its files are written as they were made. "
                "Another name makes a release of this moment."
            )
        self.stdout.write(
            f"{release.val_queries} val and {release.test_queries} test queries, "
            f"{release.positives} relevant pairs, {release.judgments} judgments in {directory}"
        )
        if not release.val_queries + release.test_queries:
            self.stderr.write("No query is complete, so the files hold only their headers.")
        for entry in release.file_list:
            self.stdout.write(f"{entry['sha256']}  {entry['name']}")
