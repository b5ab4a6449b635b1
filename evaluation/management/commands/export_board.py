"""`manage.py export_board RELEASE DIR`."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from core.commands import ServiceCommand
from core.files import open_as_callers
from evaluation.leaderboard.export import website_write
from releases.management.arguments import RELEASE_HELP
from releases.selectors import release_named


class Command(ServiceCommand):
    """Write a release's leaderboard as a folder for any static server."""

    help = (
        "Write the leaderboard of RELEASE to the directory DIR, as a website that needs no server "
        "of its own: all tables as researchers see them, with filters, and as CSV and JSON. "
        "Published runs only."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("release", help=RELEASE_HELP)
        parser.add_argument(
            "directory", type=Path, metavar="dir", help="a new or empty directory for the website"
        )
        parser.add_argument(
            "--force", action="store_true", help="replace a directory that holds such a website"
        )

    @open_as_callers()
    def handle(self, *args: Any, **options: Any) -> None:
        release = release_named(options["release"])
        directory = options["directory"]
        try:
            names = website_write(release, directory, replace=options["force"])
        except OSError as error:
            raise CommandError(f"Can't write {directory}: {error}") from error
        self.stdout.write(f"{release}: {', '.join(names)} in {directory}")
