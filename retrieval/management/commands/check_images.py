from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.commands.progress import Progress
from retrieval.corpus.models import Image
from retrieval.importing.checks import CheckReport, RootsUnavailable, images_check


class Command(BaseCommand):
    help = (
        "Read the files of images that are left in place (imported with --in-place or --root), "
        "store their SHA-256, and list those that are missing or broken. If it is stopped, run it "
        "again to continue. The exit code is 1 if any file isn't a readable image."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dataset", help="only images of this data set")
        parser.add_argument(
            "--again",
            action="store_true",
            help="also files that were checked before: one that was replaced gets its new SHA-256 "
            "and size, and its embeddings are deleted",
        )
        parser.add_argument(
            "--after", type=int, default=-1, metavar="ID", help="only images with a higher id"
        )
        parser.add_argument("--quiet", action="store_true", help="only problems and the report")

    def handle(self, *args: Any, **options: Any) -> None:
        dataset = options["dataset"]
        if dataset is not None and not Image.objects.filter(dataset=dataset).exists():
            raise CommandError(f"There is no data set “{dataset}”.")
        show = Progress("images", quiet=options["quiet"])
        last = options["after"]

        def progress(report: CheckReport, total: int) -> None:
            nonlocal last
            last = report.last
            show(report.checked, total, f"up to image {report.last}")

        def on_problem(image_id: int, file_name: str, reason: str) -> None:
            show.close()
            self.stdout.write(f"image {image_id} ({file_name}): {reason}")

        try:
            report = images_check(
                dataset=dataset,
                after=options["after"],
                again=options["again"],
                progress=progress,
                on_problem=on_problem,
            )
        except RootsUnavailable as error:
            option = f" with --after {last}" if last >= 0 else ""
            raise CommandError(f"{error} Run this again{option} when it answers.") from error
        finally:
            show.close()
        self.stdout.write(
            f"{report.checked} images checked: {report.filled} with a new SHA-256, "
            f"{report.changed} changed, {report.problems} not readable"
        )
        if report.problems:
            raise CommandError(f"{report.problems} not readable; each is listed above.")
