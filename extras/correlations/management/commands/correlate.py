"""`manage.py correlate SCORES.csv`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from core.commands import ServiceCommand
from core.csv_rows import csv_field
from extras.correlations.matrix import correlations, read_scores
from releases.management.arguments import refuse


class Command(ServiceCommand):
    """Write Kendall's tau-b between the measures of a table."""

    help = (
        "Writes, as CSV, Kendall's tau-b between the columns of SCORES.csv, which has a row for "
        "each model and a column for each measure; the first column names the models."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("scores", type=Path, metavar="SCORES.csv")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["scores"]
        try:
            with path.open("rb") as file:
                columns, errors = read_scores(file, name=path.name)
        except OSError as error:
            raise CommandError(str(error)) from error
        refuse(errors)
        found = correlations(columns)
        self.stdout.write(",".join(map(csv_field, ("", *found.names))))
        for name, taus in zip(found.names, found.taus, strict=True):
            cells = ("" if tau is None else f"{tau:.4f}" for tau in taus)
            self.stdout.write(",".join((csv_field(name), *cells)))
