"""`manage.py export_run OUT --release DIR`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from core.commands import ServiceCommand, command
from core.files import open_as_callers
from evaluation.scoring.run_files import RunLine, write_trec
from labeling.queries.categories import SPLITS
from releases.importing.layout import Layout
from releases.management.arguments import open_release, positive
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.text_vectors import text_vectors
from retrieval.ranking.batches import in_batches, vectors_at_once
from retrieval.ranking.selectors import corpus_counts, rank_images_many


class Command(ServiceCommand):
    """Write an embedding model's own run for the queries of a release."""

    help = (
        "Write OUT, a TREC run file: for each query of the release in DIR the images of the "
        "whole corpus that are most similar to its text under the model, in exact order."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("out", type=Path, help="the run file to be written")
        parser.add_argument(
            "--release", type=Path, required=True, metavar="DIR", help="the release's directory"
        )
        parser.add_argument("--model", default="", help="default: the model in use")
        parser.add_argument(
            "--depth", type=positive, default=1000, help="images a query (default: 1000)"
        )
        parser.add_argument("--split", choices=SPLITS, help="the queries of one split alone")
        parser.add_argument("--force", action="store_true", help="replace OUT if it exists")

    @open_as_callers()
    def handle(self, *args: Any, **options: Any) -> None:
        release = open_release(options["release"])
        name = options["model"] or model_in_use()
        model = EmbeddingModel.objects.filter(name=name).first()
        if model is None:
            raise CommandError(
                f"No image is embedded with {name!r} yet; run "
                f"{command('embed --model ' + name + ' --wait')} first."
            )
        counts = corpus_counts(model=model)
        if counts.unembedded:
            self.stderr.write(
                f"{counts.unembedded} images have no embedding under {model.name} "
                "and are missing in this run."
            )
        out: Path = options["out"]
        if out.exists() and not options["force"]:
            raise CommandError(f"{out} exists; --force replaces it.")
        # Written beside OUT and renamed when it is whole, so OUT is never a truncated run.
        partial = out.with_name(f".{out.name}.partial")
        try:
            with partial.open("w", encoding="utf-8", newline="") as file:
                rows = _rows(release, model, options["split"], options["depth"])
                count = write_trec(rows, file, tag=model.name)
            partial.replace(out)
        except OSError as error:
            raise CommandError(f"Can't write {out}: {error}") from error
        finally:
            partial.unlink(missing_ok=True)
        self.stdout.write(f"{count} rows in {out}, of {counts.embedded} images under {model.name}")


def _rows(
    release: Layout, model: EmbeddingModel, split: str | None, depth: int
) -> Iterator[RunLine]:
    texts = [
        (read.query.query_id, read.query.query_text)
        for read in release.queries
        if split is None or read.query.split == split
    ]
    for batch in in_batches(texts, vectors_at_once(model)):
        vectors = text_vectors(model, [text for _, text in batch])
        rankings = rank_images_many(model=model, text_vectors=vectors, limit=depth)
        for (query_id, _), ranked in zip(batch, rankings, strict=True):
            for rank, (image_id, score) in enumerate(ranked, start=1):
                yield RunLine(query_id=query_id, image_id=image_id, rank=rank, score=score)
