"""`manage.py publish_release NAME --to ORG/NAME`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from core.commands import ServiceCommand
from releases.formats.writing import counted
from releases.hub import LAYOUTS, publication_of, release_publish, validate_repository
from releases.management.arguments import RELEASE_HELP
from releases.selectors import release_named


class Command(ServiceCommand):
    """Publish the open files of a release on the Hugging Face Hub."""

    help = (
        "Publish the open files of a made release on the Hugging Face Hub, with its datasheet as "
        "the card: those that researchers may download here. Files that hold hidden labels are "
        "never sent. Run again, it goes on where it was cut short: a file that is there isn't sent "
        "again, and one of an earlier version that this one hasn't is removed. The token is "
        "HF_TOKEN, or that of “hf auth login”; HF_ENDPOINT is the address of another Hub."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help=RELEASE_HELP)
        parser.add_argument(
            "--to", required=True, metavar="ORG/NAME", help="the data set on the Hub, new or not"
        )
        parser.add_argument(
            "--layout",
            choices=LAYOUTS,
            default=LAYOUTS[0],
            help="mteb: the folder for MTEB alone, where MTEB looks for it, and the datasheet",
        )
        parser.add_argument(
            "--public",
            action="store_true",
            help="make a new data set public, or publish to one that is (default: a new one is "
            "private, and a public one is refused); a private one stays private",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="list the files that would be published and those that stay here; nothing is sent",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        release, repository = release_named(options["name"]), options["to"]
        validate_repository(repository)
        publication = publication_of(release, options["layout"])
        sizes = publication.sizes
        what = f"{counted(len(sizes), 'file', 'files')} of {release}, {sum(sizes.values()):,} bytes"
        if options["dry_run"]:
            for name, size in sizes.items():
                self.stdout.write(f"{size:>15,}  {name}")
            self.stdout.write(f"{what}, would be published as {repository}.")
            for name in publication.withheld:
                self.stdout.write(f"Withheld, as it holds hidden labels of the test split: {name}")
            return
        self.stderr.write(f"{what}, are published as {repository} …")
        result = release_publish(
            publication=publication, repository=repository, public=options["public"]
        )
        kept = len(sizes) - len(result.sent)
        self.stdout.write(
            f"{result.address} ({'private' if result.private else 'public'}): "
            f"{counted(len(result.sent), 'file', 'files')} sent, {kept:,} there already, "
            f"{len(result.removed):,} removed"
        )
        if publication.withheld:
            count = counted(len(publication.withheld), "file", "files")
            self.stdout.write(f"Withheld, with hidden labels of the test split: {count}.")
