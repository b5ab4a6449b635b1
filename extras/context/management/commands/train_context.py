"""The command `train_context`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from core.commands import ServiceCommand
from core.commands.progress import Progress
from core.files import open_as_callers
from extras.context.services import context_train
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import EmbeddingModel


class Command(ServiceCommand):
    """Trains, and prints what place and month add where they were not learned."""

    help = (
        "Train a small location encoder on the corpus' own species, places and months, and write "
        "a context model's folder; `add_context` makes its embeddings. It prints how many images "
        "of observers, and of places, that it hasn't seen are named rightly with and without it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="new or empty")
        parser.add_argument("--base", help="the model that embeds the images (the model in use)")
        parser.add_argument("--held-out", type=float, default=0.2, help="share (0.2)")

    @open_as_callers()
    def handle(self, *args: Any, folder: Path, **options: Any) -> None:
        name = options["base"] or model_in_use()
        base = EmbeddingModel.objects.filter(name=name).first()
        if base is None:
            raise CommandError(f"{name} has embedded no image yet.")
        if not 0 < options["held_out"] < 1:
            raise CommandError("--held-out must be between 0 and 1.")
        with Progress("texts", quiet=options["verbosity"] == 0) as show:
            report = context_train(
                base=base, directory=folder, held_out=options["held_out"], progress=show
            )
        self.stdout.write(
            f"Learned from {report.images:,} images of {report.species:,} species; "
            f"weight of the context {report.weight:g}."
        )
        for kind, (images, alone, both, only) in report.measured.items():
            self.stdout.write(
                f"Held-out {kind}, {images:,} images: species right {alone / images:.1%} by the "
                f"image, {both / images:.1%} with place and month, {only / images:.1%} by those "
                "alone."
            )
        if not report.weight:
            self.stdout.write("Place and month add nothing here; add_context refuses the folder.")
        self.stdout.write(
            "What it gains on held-out observers but not on held-out places, it knows of where "
            "people photograph rather than of where species live."
        )
