from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from core.commands import ServiceCommand
from core.commands.progress import Progress
from core.files import open_as_callers
from retrieval.embedding.counts import embedded_models
from retrieval.embedding.exporting import DTYPES, export_embeddings
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import EmbeddingModel


class Command(ServiceCommand):
    help = (
        "Write a model's embeddings in clip-retrieval's layout, for other tools and for "
        "import_embeddings: OUT/img_emb/img_emb_0.npy with OUT/metadata/metadata_0.parquet, by "
        "image id. The folder appears whole or not at all."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("out", metavar="OUT", type=Path)
        parser.add_argument("--model", default="", help="by default the model in use")
        parser.add_argument("--per-file", type=int, default=1_000_000, help="vectors in a file")
        parser.add_argument("--dtype", choices=DTYPES, default="float16")
        parser.add_argument(
            "--withdrawn", action="store_true", help="also images that are withdrawn"
        )
        parser.add_argument(
            "--without-suffix",
            action="store_true",
            help="image_path without .jpg and the like, as INQUIRE's own evaluation expects it",
        )
        parser.add_argument("--force", action="store_true", help="replace an earlier export")
        parser.add_argument("--quiet", action="store_true", help="only the report")

    @open_as_callers()
    def handle(self, *args: Any, **options: Any) -> None:
        if options["per_file"] < 1:
            raise CommandError("--per-file must be at least 1.")
        name = options["model"] or model_in_use()
        model = EmbeddingModel.objects.filter(name=name).first()
        if model is None:
            known = ", ".join(model.name for model in embedded_models()) or "none"
            raise CommandError(
                f"No image is embedded with {name!r}. Models with embeddings: {known}"
            )
        show = Progress("vectors", quiet=options["quiet"])
        try:
            report = export_embeddings(
                model=model,
                directory=options["out"],
                per_file=options["per_file"],
                dtype=options["dtype"],
                withdrawn=options["withdrawn"],
                without_suffix=options["without_suffix"],
                replace=options["force"],
                progress=show,
            )
        except OSError as error:
            raise CommandError(str(error)) from error
        finally:
            show.close()
        self.stdout.write(
            f"{options['out']}: {report.rows:,} vectors of {report.dimension:,} numbers, "
            f"{report.files:,} files"
        )
