from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from retrieval.importing.records import ImportRefused, Refusal
from retrieval.management.ready import require_migrated
from retrieval.services.importing import import_images
from retrieval.terminal import ProgressLine, bar


class Command(BaseCommand):
    help = (
        "Bring images into the corpus. PATH is a COCO file (as iNat24's train.json) or a folder "
        "with one sub-folder per species. Run it again when the data set changed: nothing is "
        "doubled. The exit code is 1 if any record was refused."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="PATH")
        parser.add_argument(
            "--dataset",
            help="the name under which the images are known again; by default the file's folder "
            "and name (photos/train), or the folder's name",
        )
        parser.add_argument("--quiet", action="store_true", help="only refusals and the report")

    def handle(self, *args: Any, **options: Any) -> None:
        require_migrated()
        line = ProgressLine(sys.stderr, quiet=options["quiet"])
        began = time.monotonic()

        def progress(done: int, total: int) -> None:
            rate = done / max(time.monotonic() - began, 0.001)
            line.show(f"{bar(done, total)} {done} of {total} images, {rate:.0f} a second")

        def on_refusal(refusal: Refusal) -> None:
            line.end()
            self.stdout.write(f"refused {refusal}")

        try:
            report = import_images(
                path=options["path"],
                dataset=options["dataset"],
                progress=progress,
                on_refusal=on_refusal,
            )
        except ImportRefused as error:
            raise CommandError(str(error)) from error
        finally:
            line.end()
        self.stdout.write(
            f"{report.dataset}: {report.added} added, {report.updated} updated, "
            f"{report.skipped} skipped, {report.refused_count} refused"
        )
        if report.refused_count:
            raise CommandError(f"{report.refused_count} refused; each is named above.")
