"""`manage.py verify_release NAME[@VERSION]`."""

import re
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from benchmark import selectors
from benchmark.models import Release
from benchmark.services import ReleaseUnusable, release_verify
from benchmark.software import software


class Command(BaseCommand):
    """Check that a release is what was made, and comes out of its snapshot again."""

    help = (
        "Check every file of a made release against its SHA-256, write all files again from the "
        "snapshot and compare them byte for byte. Names each file that differs; the exit status is "
        "1 if any does."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "release", metavar="NAME[@VERSION]", help="the latest version unless told"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        release = _find(options["release"])
        if release is None:
            raise CommandError(f"There is no made release {options['release']!r}.")
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


def _find(text: str) -> Release | None:
    """A name with a version after "@"; a name may hold an "@" itself."""
    versioned = re.fullmatch(r"(.+)@([0-9]{1,9})", text, flags=re.DOTALL)
    found = None
    if versioned:
        found = selectors.release_find(name=versioned[1], version=int(versioned[2]))
    return found or selectors.release_find(name=text)
