"""The command `import_queries`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from core.commands import ServiceCommand
from core.files import open_regular
from labeling.lifecycle.imports import QueryImportRefused, queries_import
from labeling.queries.benchmarks import benchmark_named
from labeling.queries.categories import SPLITS


class Command(ServiceCommand):
    """Reads the files and imports them together."""

    help = (
        "Import queries from CSV files in INQUIRE's columns. All files or none; run twice, it "
        "changes nothing. Queries that anybody has judged for, and those that no import brought, "
        "stay as they are unless --update names them. The split comes from a file's name "
        "(…_val.csv, …_test.csv), a split column or --split."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE.csv")
        parser.add_argument("--split", choices=SPLITS, default="", help="for every row")
        parser.add_argument(
            "--benchmark",
            metavar="NAME",
            help="for every row (default: the first for new queries, and others keep theirs)",
        )

        parser.add_argument(
            "--update",
            nargs="+",
            type=int,
            default=[],
            metavar="NUMBER",
            help="queries to change though they have judgments or no import brought them",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="tell what it would do, and change nothing"
        )

    def handle(
        self,
        *args: Any,
        files: list[Path],
        split: str,
        benchmark: str | None,
        update: list[int],
        dry_run: bool,
        **options: Any,
    ) -> None:
        try:
            contents = []
            for path in files:
                with open_regular(path) as file:
                    contents.append((path.name, file.read()))
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from error
        try:
            into = benchmark_named(benchmark) if benchmark else None
            report = queries_import(
                files=contents, by=None, split=split, benchmark=into, named=update, dry_run=dry_run
            )
        except QueryImportRefused as error:
            self.stderr.write(str(error))
            raise CommandError(
                f"Nothing was imported: {len(error.errors)} errors in the files."
            ) from error
        for row in report.rows:
            self.stdout.write(
                f"{row.query_id}: " + (f"left, {row.left}" if row.left else "changed")
            )
            for name, before, after in row.changes:
                self.stdout.write(f"  {name}: {before!r} -> {after!r}")
        for cut in report.cut:
            self.stdout.write(f"{cut.text!r}: {cut}")
        self.stdout.write(report.counts + (" (a dry run)" if dry_run else ""))
