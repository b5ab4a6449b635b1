from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from core.commands import ServiceCommand
from core.commands.progress import Progress
from retrieval.embedding.importing import EmbeddingImportReport, import_embeddings


class Command(ServiceCommand):
    help = (
        "Import embeddings in clip-retrieval's layout, as INQUIRE's authors publish them: "
        "DIR/img_emb/img_emb_0.npy with DIR/metadata/metadata_0.parquet, which names the image of "
        "each row. After an interruption run it again: stored embeddings are left alone. The exit "
        "code is 1 if any row was not imported."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", metavar="DIR", type=Path)
        parser.add_argument(
            "--model",
            required=True,
            help="the model that made them, as EMBEDDING_MODEL names it; a model that can't be "
            "loaded here is accepted, but no text can be ranked under it",
        )
        parser.add_argument(
            "--dimension", type=int, help="of the vectors; refused if the files have another"
        )
        parser.add_argument("--dataset", help="match rows only with images of this data set")
        parser.add_argument(
            "--key",
            metavar="COLUMN",
            help="the column of the metadata that names the image: by its id in the source data "
            "set, its file name or its image id; by default it is detected",
        )
        parser.add_argument(
            "--limit-to-known",
            action="store_true",
            help="the files have more images than the corpus: other rows are no error",
        )
        parser.add_argument(
            "--normalize",
            action="store_true",
            help="scale vectors of any length to unit length; by default those whose length "
            "differs from 1 by more than 1 %% are refused",
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="replace other vectors of images by those of the files",
        )
        parser.add_argument("--quiet", action="store_true", help="only the report")

    def handle(self, *args: Any, **options: Any) -> None:
        show = Progress("rows", quiet=options["quiet"])

        def on_stage(text: str) -> None:
            show.close()
            if not options["quiet"]:
                sys.stderr.write(f"{text} …\n")

        try:
            report = import_embeddings(
                model_name=options["model"],
                directory=options["directory"],
                dimension=options["dimension"],
                dataset=options["dataset"],
                key=options["key"],
                limit_to_known=options["limit_to_known"],
                normalize=options["normalize"],
                replace=options["replace"],
                progress=show,
                on_stage=on_stage,
            )
        finally:
            show.close()
        self._report(report)

    def _report(self, report: EmbeddingImportReport) -> None:
        say = self.stdout.write
        say(
            f"{report.model}: {report.rows:,} vectors of {report.dimension:,} numbers in "
            f"{report.files:,} files, matched by {report.key}"
        )
        if report.unloadable:
            say(f"This model can't be loaded here, only compared: {report.unloadable}")
        replaced = f" ({report.replaced:,} in another's place)" if report.replaced else ""
        say(f"{report.stored:,} stored{replaced}, {report.present:,} were there")
        for kind, count, text in (
            ("unmatched", report.unmatched, "of no image of the corpus"),
            ("ambiguous", report.ambiguous, "fit several images; --dataset or --key may tell them"),
            (
                "repeated",
                report.repeated,
                "of an image that an earlier row is of; the first counts",
            ),
            ("refused", report.refused, "refused; --normalize scales other lengths"),
            ("differing", report.differing, "of an image that has another vector, which was kept"),
        ):
            if not count:
                continue
            say(f"{count:,} {text}")
            named = report.named.get(kind, [])
            for example in named:
                say(f"  {example}")
            if count > len(named):
                say(f"  … and {count - len(named):,} more")
        if report.faults:
            raise CommandError(f"{report.faults:,} of {report.rows:,} rows were not taken.")
