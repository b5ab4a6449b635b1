"""`manage.py verify_certificates DIR`."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from releases.formats.writing import counted
from releases.verifying.certificate_checks import certificates_check


class Command(BaseCommand):
    """Compute the certificates of a release again from its files."""

    help = (
        "Compute the certificates of a release again from the files that export_release wrote to "
        "DIR: that each round drew the first images in the order of its published key, that the "
        "counts follow from rounds, draws and labels, and the bounds from the counts, and that "
        "every query has as many rounds as the release was made with; the same of "
        "the release's own certificate, whose audits selected images by its key. Names each "
        "difference; the exit status is 1 if there is any."
    )
    # Needs files alone, on whichever machine.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "directory", type=Path, metavar="dir", help="a release's files, or its open ones alone"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            checks = certificates_check(options["directory"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CommandError(f"Can't read the release: {error}") from error
        for difference in checks.differences:
            self.stderr.write(difference)
        if not (checks.queries or checks.audits or checks.differences):
            self.stdout.write(f"{checks.release} has no audits, so there is nothing to check.")
            return
        self.stdout.write(
            f"{checks.release}: computed {counted(checks.queries, 'certificate', 'certificates')} "
            f"again, of {counted(checks.rounds, 'round', 'rounds')} with "
            f"{counted(checks.draws, 'draw', 'draws')}.\n"
            "Checked: each round drew the first images in the order of its published key among "
            "those that it could draw; labels are those of the release's pairs and judgments; "
            "found, unjudged, draws and hits follow from draws and labels, and bounds from these."
        )
        if checks.audits:
            self.stdout.write(
                "The release's own certificate: "
                f"{counted(checks.audits, 'audit', 'audits')}, which selected "
                f"{counted(checks.selected, 'image', 'images')} of {checks.audited:,} by the "
                "published keys, as computed again; counts and bound follow from their labels."
            )
        if checks.withdrawn:
            self.stdout.write(
                f"Not checked: the labels of {counted(checks.withdrawn, 'draw', 'draws')} whose "
                "images were withdrawn, which the release doesn't hold."
            )
        if checks.differences:
            count = counted(len(checks.differences), "difference", "differences")
            self.stdout.write(f"{count}: the certificates don't follow from these files.")
            sys.exit(1)
        self.stdout.write("No difference.")
