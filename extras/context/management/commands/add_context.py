"""The command `add_context`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from core.commands import ServiceCommand
from core.commands.progress import Progress
from extras.context.services import context_add


class Command(ServiceCommand):
    """Adds to each embedding of the base what place and month say."""

    help = (
        "Make the embeddings of a context model, a folder with context.json, from those of its "
        "base. The folder's path is the model's name from then on. Run it again after an import."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="FOLDER")
        parser.add_argument(
            "--environment", type=Path, metavar="FILE.csv",
            help="the table, where the model was trained with one",
        )  # fmt: skip

    def handle(self, *args: Any, folder: Path, **options: Any) -> None:
        with Progress("images", quiet=options["verbosity"] == 0) as show:
            stored = context_add(
                spec=str(folder.resolve()), table=options["environment"], progress=show
            )
        self.stdout.write(f"{stored:,} embeddings stored; the model is {folder.resolve()}.")
