"""`manage.py migrate_storage --from files --to s3://bucket/prefix`."""

from argparse import ArgumentParser
from collections import Counter
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from annotator.backup.migration import migrate
from core.commands.progress import Progress
from core.storage import storage_at

FILES = "files"


class Command(BaseCommand):
    """migrate_storage --from PLACE --to PLACE"""

    help = (
        "Copy the files that the database names from VAR_DIR to a bucket or back, "
        "and compare each with its SHA-256. What is there already and the same is left; a command "
        "that was killed goes on when it is run again. The exit status is 1 if a file was missing "
        "or damaged."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        for name in ("from", "to"):
            parser.add_argument(
                f"--{name}", required=True, help="“files” for VAR_DIR, or s3://bucket/prefix"
            )
        parser.add_argument("--quiet", action="store_true", help="show no progress")

    def handle(self, *args: Any, **options: Any) -> None:
        places = [options["from"].rstrip("/"), options["to"].rstrip("/")]
        wrong = [one for one in places if one != FILES and not one.startswith("s3://")]
        if wrong or places[0] == places[1]:
            raise CommandError("Name two places, each “files” or s3://bucket/prefix.")
        source, target = (
            storage_at(settings.VAR_DIR if place == FILES else place) for place in places
        )
        counts: Counter[str] = Counter()
        with Progress("files", quiet=options["quiet"]) as show:
            for name, outcome in migrate(source, target):
                counts[outcome] += 1
                if outcome in ("missing", "damaged"):
                    show.close()
                    self.stdout.write(f"{outcome}: {name}")
                show(counts.total())
        self.stdout.write(f"Copied: {counts['copied']}, there already: {counts['same']}")
        if counts["missing"] or counts["damaged"]:
            raise CommandError(
                f"Missing: {counts['missing']}, damaged: {counts['damaged']}. Restore them from a "
                "backup."
            )
