"""`manage.py verify_release RELEASE`."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from releases.making.services import ReleaseUnusable, release_verify
from releases.management.arguments import RELEASE_HELP, find_release
from releases.snapshot.snapshot import software


class Command(BaseCommand):
    """Check that a release is what was made, and comes out of its snapshot again."""

    help = (
        "Check every file of a made release against its SHA-256, write all files again from the "
        "snapshot and compare them byte for byte. Names each file that differs or that is none of "
        "the release's; the exit status is 1 if there is any."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("release", help=RELEASE_HELP)

    def handle(self, *args: Any, **options: Any) -> None:
        release = find_release(options["release"])
        try:
            findings = release_verify(release=release)
        except ReleaseUnusable as error:
            raise CommandError(str(error)) from error
        for finding in findings:
            self.stderr.write(f"{finding.name} {finding.problem}")
        if findings:
            made_by = release.header.get("software", "")
            if made_by != software():
                self.stderr.write(f"It was made by {made_by}; this is {software()}.")
            sys.exit(1)
        self.stdout.write(
            f"{release}: {len(release.file_list)} files are as they were made, and come out of the "
            "snapshot again byte for byte."
        )
