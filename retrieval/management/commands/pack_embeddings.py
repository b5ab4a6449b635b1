from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from core.commands import ServiceCommand
from core.commands.progress import Progress
from retrieval.embedding.counts import embedded_models
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.building import pack, verify_matrix
from retrieval.ranking.files import Manifest, folder_of


class Command(ServiceCommand):
    help = (
        "Pack the embeddings of a model, or of each, into a matrix under VAR_DIR from which images "
        "are ranked at the memory's speed, or update that. Workers do it automatically."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--model", help="by default every model that has embeddings")
        parser.add_argument(
            "--check",
            action="store_true",
            help="pack nothing; compare every vector with the database, and exit with 1 if any "
            "differs",
        )
        parser.add_argument("--rebuild", action="store_true", help="read everything again")

    def handle(self, *args: Any, **options: Any) -> None:
        models = embedded_models()
        if options["model"] is not None:
            models = EmbeddingModel.objects.filter(name=options["model"])
            if not models:
                raise CommandError(f"There is no model {options['model']}.")
        if not models:
            self.stdout.write("Nothing to do: no model has embeddings.")
        do = self._check if options["check"] else self._pack
        wrong = [model.name for model in models if not do(model, options)]
        if wrong:
            raise CommandError(f"Wrong: {', '.join(wrong)}.")

    def _pack(self, model: EmbeddingModel, options: dict[str, Any]) -> bool:
        def go_on(rows: int, total: int) -> bool:
            show(rows, total)
            return True

        with Progress("embeddings", quiet=options["verbosity"] < 1) as show:
            rows = pack(model, rebuild=options["rebuild"], go_on=go_on)
        if rows is None:
            raise CommandError(f"Another process is packing the matrix of {model}.")
        if options["verbosity"]:
            read = f"{rows:,} embeddings read" if rows else "up to date"
            self.stdout.write(f"{model}: {read}, in {folder_of(model)}")
        return True

    def _check(self, model: EmbeddingModel, options: dict[str, Any]) -> bool:
        whole = folder_of(model)
        # A folder in the matrix's is the matrix of some of the images, by an extra.
        packed = [Manifest.load(folder) for folder in (whole, *whole.glob("*/"))]
        faults = []
        for images in [manifest.images for manifest in packed if manifest] or [None]:
            with Progress("embeddings compared", quiet=options["verbosity"] < 1) as show:
                faults += verify_matrix(model, show, images)
        for fault in faults:
            self.stdout.write(f"{model}: {fault}")
        if not faults and options["verbosity"]:
            self.stdout.write(f"{model}: as the database has it")
        return not faults
