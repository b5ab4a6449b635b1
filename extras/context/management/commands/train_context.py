"""The command `train_context`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from core.commands import ServiceCommand
from core.commands.progress import Progress
from core.files import open_as_callers
from extras.context.environment import FARTHEST, environment_read
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
        parser.add_argument(
            "--environment", type=Path, metavar="FILE.csv",
            help="numbers such as elevation by image (image_id, file_name or source_id) or by "
            "latitude and longitude, which the model learns from too",
        )  # fmt: skip
        parser.add_argument("--columns", nargs="+", default=[], help="of that table (all)")
        parser.add_argument(
            "--within", type=float, default=FARTHEST, metavar="KM",
            help=f"how far the nearest row of a table by place may be ({FARTHEST:g})",
        )  # fmt: skip

    @open_as_callers()
    def handle(self, *args: Any, folder: Path, **options: Any) -> None:
        name = options["base"] or model_in_use()
        base = EmbeddingModel.objects.filter(name=name).first()
        if base is None:
            raise CommandError(f"{name} has embedded no image yet.")
        if not 0 < options["held_out"] < 1:
            raise CommandError("--held-out must be between 0 and 1.")
        environment = None
        if table := options["environment"]:
            about = {"columns": options["columns"], "farthest_km": options["within"]}
            environment = environment_read(table, about)
        with Progress("texts", quiet=options["verbosity"] == 0) as show:
            report = context_train(
                base=base,
                directory=folder,
                held_out=options["held_out"],
                environment=environment,
                progress=show,
            )
        what = "place and month"
        if environment:
            what = "place, month and environment"
            share = environment.found / environment.images
            columns = ", ".join(environment.about["columns"])
            self.stdout.write(f"{share:.1%} of the images have a row of {columns}.")
        self.stdout.write(
            f"Learned from {report.images:,} images of {report.species:,} species; "
            f"weight of the context {report.weight:g}."
        )
        for kind, (images, alone, both, only) in report.measured.items():
            self.stdout.write(
                f"Held-out {kind}, {images:,} images: species right {alone / images:.1%} by the "
                f"image, {both / images:.1%} with {what}, {only / images:.1%} by those "
                "alone."
            )
        if not report.weight:
            self.stdout.write("Place and month add nothing here; add_context refuses the folder.")
        self.stdout.write(
            "What it gains on held-out observers but not on held-out places, it knows of where "
            "people photograph rather than of where species live."
        )
