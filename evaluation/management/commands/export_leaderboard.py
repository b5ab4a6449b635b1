"""Write a release's leaderboard to a file."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.files import open_as_callers
from evaluation.leaderboard.export import CONTENT_TYPES, export
from evaluation.runs.selectors import NoSnapshot
from releases.management.arguments import RELEASE_HELP, find_release


class Command(BaseCommand):
    """export_leaderboard RELEASE OUT"""

    help = (
        "Writes the published runs of a release to OUT, whose name has the format: .csv, .json, "
        ".tex for LaTeX tables, or .html for one web page that needs no server."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which release, and where to."""
        parser.add_argument("release", help=RELEASE_HELP)
        parser.add_argument("out", type=Path, help="a file name with .csv, .json, .tex or .html")

    @open_as_callers()
    def handle(self, *args: Any, **options: Any) -> None:
        """Write the file, replacing one that is there."""
        out: Path = options["out"]
        extension = out.suffix.removeprefix(".").lower()
        if extension not in CONTENT_TYPES:
            known = ", ".join(f".{one}" for one in CONTENT_TYPES)
            raise CommandError(f"{out.name} must end with one of {known}.")
        release = find_release(options["release"])
        try:
            text = export(release, extension)
            out.write_text(text, encoding="utf-8")
        except (NoSnapshot, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{release}: {out}, {len(text.encode()):,} bytes")
