"""The command `propose_lookalikes`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.commands.progress import Progress
from extras.lookalikes.services import confusions_propose
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import EmbeddingModel


class Command(BaseCommand):
    """Looks through the embeddings of each species."""

    help = (
        "Propose look-alikes from the corpus: species whose images lie nearer to another species' "
        "center than to their own. It replaces earlier proposals; species without a look-alike "
        "group get one."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--model", help="whose embeddings are compared (the model in use)")
        parser.add_argument("--each", type=int, default=50, help="images of a species (50)")
        parser.add_argument(
            "--least", type=float, default=0.1, help="share of a species' images (0.1)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["model"] or model_in_use()
        model = EmbeddingModel.objects.filter(name=name).first()
        if model is None:
            raise CommandError(f"{name} has embedded no image yet.")
        if not (0 < options["least"] <= 1 and options["each"] > 1):
            raise CommandError("--least must be above 0 and at most 1, --each at least 2.")
        show = Progress("species", quiet=options["verbosity"] == 0)
        try:
            report = confusions_propose(
                model=model, each=options["each"], least=options["least"], progress=show
            )
        finally:
            show.close()
        self.stdout.write(f"{report.pairs:,} pairs; {report.grouped:,} species got a group.")
