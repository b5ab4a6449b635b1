"""`manage.py export_release NAME DIR`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from core.commands import ServiceCommand
from core.files import open_as_callers
from labeling.queries.benchmarks import benchmark_named
from labeling.queries.models import Benchmark
from releases.formats.writing import counted
from releases.making.labels import images_to_audit
from releases.making.progress import Step
from releases.making.services import release_export
from releases.management.arguments import RELEASE_HELP
from releases.models import Release
from releases.selectors import UnknownRelease, release_find


class Command(ServiceCommand):
    """Make a release of the completed queries, or give out one that is made."""

    help = (
        "Write the files of the release NAME, in every format, to the directory DIR as they were "
        "made. With --new, make the next version of NAME first: the completed queries and their "
        "consensus judgments at this moment."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help=f"{RELEASE_HELP}; with --new the name alone")
        parser.add_argument(
            "directory", type=Path, metavar="dir", help="a new or empty directory for the files"
        )
        parser.add_argument("--new", action="store_true", help="make the next version of NAME")
        parser.add_argument(
            "--benchmark",
            metavar="NAME",
            help="whose completed queries go into a new version; needed for the first of a "
            "name where there are two benchmarks",
        )
        parser.add_argument(
            "--rerank-model",
            metavar="MODEL",
            help="whose first 100 are the fixed lists of a new version; '' for none "
            "(default: the model in use)",
        )
        parser.add_argument(
            "--include-images",
            action="store_true",
            help="put the images' bytes into a new version's folders for Hugging Face and MTEB",
        )
        parser.add_argument(
            "--test-labels",
            choices=Release.TestLabels.values,
            default="",
            help="who sees the labels of a new version's test split: hidden, reviewers and admins "
            "alone, or public, researchers too (default: hidden)",
        )
        parser.add_argument(
            "--pay-per-hour",
            metavar="PAY",
            help="what people were paid, such as '15.50 USD', for a new version's datasheet",
        )
        parser.add_argument(
            "--test-halves",
            action="store_true",
            help="divide a new version's test split, whose labels are hidden, into a public half, "
            "on which runs see their means, and a private half, shown once the board closes",
        )
        parser.add_argument(
            "--force", action="store_true", help="replace a directory that holds a release"
        )

    @open_as_callers()
    def handle(self, *args: Any, **options: Any) -> None:
        directory = options["directory"]
        chosen: dict[str, Any] = {}
        if options["rerank_model"] is not None:
            chosen["rerank_model"] = options["rerank_model"]
        if options["include_images"]:
            chosen["include_images"] = True
        if options["test_labels"]:
            chosen["test_labels"] = options["test_labels"]
        if options["test_halves"]:
            chosen["test_halves"] = True
        if options["pay_per_hour"]:
            chosen["pay_per_hour"] = options["pay_per_hour"]
        benchmark = benchmark_named(options["benchmark"]) if options["benchmark"] else None
        if options["new"]:
            self._say_what_waits(options["name"], benchmark)
        try:
            release = release_export(
                name=options["name"],
                directory=directory,
                replace=options["force"],
                new=options["new"],
                options=chosen,
                benchmark=benchmark,
                report=self._report(),
            )
        except UnknownRelease as error:
            raise CommandError(f"{error} --new makes one.") from error
        except OSError as error:
            raise CommandError(f"Can't write {directory}: {error}") from error
        if not options["new"]:
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

    def _say_what_waits(self, name: str, benchmark: Benchmark | None) -> None:
        """Say it before the release is made, where its certificate would state nothing."""
        earlier = release_find(name=name)
        waiting = images_to_audit(benchmark or (earlier.benchmark if earlier else None))
        if waiting:
            self.stderr.write(
                f"{counted(waiting, 'image', 'images')} drawn for the certificate "
                f"{'waits' if waiting == 1 else 'wait'} for a judgment: the release says “not "
                "audited yet” and states no recall."
            )

    def _report(self) -> Any:
        """Says each step once, when it begins."""
        named: set[str] = set()

        def report(steps: Sequence[Step]) -> None:
            for step in steps:
                if step.state == "running" and step.title not in named:
                    named.add(step.title)
                    self.stderr.write(f"{step.title} …")

        return report
