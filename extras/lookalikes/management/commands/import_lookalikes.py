"""The command `import_lookalikes`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from core.commands import ServiceCommand
from core.files import open_regular
from extras.lookalikes.services import confusions_import


class Command(ServiceCommand):
    """Reads the table and takes it in."""

    help = (
        "Take in which species is taken for which: a CSV of species, taken_for and, if it has it, "
        "count, such as the lookalikes.csv of a curated corpus, or a row for each identification. "
        "It replaces an earlier table. Species without a look-alike group get one."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.csv")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        try:
            with open_regular(file) as lines:
                report = confusions_import(lines=lines, name=file.name)
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from error
        self.stdout.write(f"{report.pairs:,} pairs; {report.grouped:,} species got a group.")
        for name in report.unknown:
            self.stdout.write(f"not in the corpus: {name}")
