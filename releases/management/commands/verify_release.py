"""`manage.py verify_release RELEASE`."""

import sys
from typing import Any

from django.core.management.base import CommandParser

from core.commands import ServiceCommand
from releases.making.services import release_verify
from releases.management.arguments import RELEASE_HELP
from releases.selectors import release_named
from releases.snapshot.snapshot import software


class Command(ServiceCommand):
    """Check that a release is what was made, and comes out of its snapshot again."""

    help = (
        "Check every file of a made release against its SHA-256, write all files again from the "
        "snapshot and compare them byte for byte. Names each file that differs or that is none of "
        "the release's; the exit status is 1 if there is any."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("release", help=RELEASE_HELP)

    def handle(self, *args: Any, **options: Any) -> None:
        release = release_named(options["release"])
        findings = release_verify(release=release)
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
