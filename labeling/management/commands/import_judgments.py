"""The command `import_judgments`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from core.files import open_regular
from labeling.lifecycle.imports import JudgmentImportRefused, judgments_import


class Command(BaseCommand):
    """Reads the file and imports it as one annotator's."""

    help = (
        "Import judgments from a CSV with query_id, image_id and relevance (relevant, "
        "not_relevant, unsure) as one annotator's. Without a relevance column, as in INQUIRE's "
        "annotations, every row is relevant. All rows or none; run twice, it changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.csv")
        parser.add_argument("--annotator", required=True, metavar="NAME")

    def handle(self, *args: Any, file: Path, annotator: str, **options: Any) -> None:
        person = get_user_model().objects.filter(username=annotator).first()
        if person is None:
            raise CommandError(f"There is no user {annotator!r}; make one with create_user.")
        try:
            with open_regular(file) as opened:
                data = opened.read()
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from error
        try:
            report = judgments_import(data=data, name=file.name, annotator=person)
        except JudgmentImportRefused as error:
            self.stderr.write(str(error))
            raise CommandError(
                f"Nothing was imported: {len(error.errors)} errors in the file."
            ) from error
        self.stdout.write(
            f"{report.added} added, {report.updated} changed, {report.unchanged} unchanged"
        )
