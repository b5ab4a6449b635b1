from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from core.commands import ServiceCommand
from core.commands.progress import Progress
from extras.duplicates.services import LEAST_LIKENESS, duplicates_find
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import EmbeddingModel


class Command(ServiceCommand):
    help = (
        "Find near-duplicates and bursts among the images of each species, by embeddings and "
        "perceptual hashes; reviewers decide on the groups under Flags. Run it again after an "
        "import: groups that nobody decided on are replaced."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--model", help="whose embeddings are compared (the model in use)")
        parser.add_argument(
            "--likeness",
            type=float,
            default=LEAST_LIKENESS,
            help=f"least cosine similarity ({LEAST_LIKENESS})",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["model"] or model_in_use()
        model = EmbeddingModel.objects.filter(name=name).first()
        if model is None:
            raise CommandError(f"{name} has embedded no image yet.")
        if not 0 < options["likeness"] <= 1:
            raise CommandError("--likeness must be above 0 and at most 1.")
        with Progress("species", quiet=options["verbosity"] == 0) as show:
            groups, images = duplicates_find(model=model, least=options["likeness"], progress=show)
        self.stdout.write(f"{groups:,} groups of {images:,} images to decide on.")
