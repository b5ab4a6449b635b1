"""`manage.py export_release NAME DIR`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from benchmark.management.arguments import positive
from benchmark.services import ReleaseUnusable, release_export
from benchmark.services.progress import Step
from retrieval.directories import TargetRefused
from retrieval.jobs import JobFailed


class Command(BaseCommand):
    """Make a release of the completed queries, or give out one that is made."""

    help = (
        "Write the release NAME to the directory DIR: the completed queries and their consensus "
        "judgments in every format. A new name makes version 1 of this moment; of a name that "
        "exists the latest version is written as it was made, or with --version another one; "
        "--new makes the next version."
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        # --version is the release's here, not Django's.
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the release's name")
        parser.add_argument(
            "directory", type=Path, metavar="dir", help="a new or empty directory for the files"
        )
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "--version", type=positive, dest="release_version", help="not the latest, but this one"
        )
        which.add_argument("--new", action="store_true", help="make the next version")
        parser.add_argument(
            "--rerank-model",
            metavar="MODEL",
            help="whose first 100 are the fixed lists of a new version; '' for none "
            "(default: EMBEDDING_MODEL)",
        )
        parser.add_argument(
            "--include-images",
            action="store_true",
            help="put the images' bytes into a new version's Hugging Face folder",
        )
        parser.add_argument(
            "--force", action="store_true", help="replace a directory that holds a release"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        directory = options["directory"]
        asked: dict[str, Any] = {}
        if options["rerank_model"] is not None:
            asked["rerank_model"] = options["rerank_model"]
        if options["include_images"]:
            asked["include_images"] = True
        try:
            release, made = release_export(
                name=options["name"],
                directory=directory,
                replace=options["force"],
                version=options["release_version"],
                new=options["new"],
                options=asked,
                report=self._report(),
            )
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        except (TargetRefused, ReleaseUnusable, JobFailed) as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"Can't write {directory}: {error}") from error
        if not made:
            self.stdout.write(
                f"{release} was made on {release.made_at:%Y-%m-%d %H:%M} UTC and never changes: "
                "its files are written as they were made. "
                "--new makes the next version, of this moment."
            )
        self.stdout.write(
            f"{release}: {release.val_queries} val and {release.test_queries} test queries, "
            f"{release.positives} relevant pairs, {release.judgments} judgments in {directory}"
        )
        if not release.val_queries + release.test_queries:
            self.stderr.write("No query is complete, so the files hold only their headers.")
        for entry in release.file_list:
            self.stdout.write(f"{entry['sha256']}  {entry['name']}")

    def _report(self) -> Any:
        """Says each step once, when it begins."""
        told: set[str] = set()

        def report(steps: Sequence[Step]) -> None:
            for step in steps:
                if step.state == "running" and step.title not in told:
                    told.add(step.title)
                    self.stderr.write(f"{step.title} …")

        return report
