"""`manage.py score_demo_model`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from PIL import Image

from benchmark.management.arguments import positive
from demo.corpus import write_corpus
from demo.queries import QUERIES, DemoQuery, read_scenes
from demo.scores import DemoScore, demo_score, mean_score
from retrieval.encoding.encoders import Encoder, ModelSpecError, load_encoder

BATCH = 64


class Command(BaseCommand):
    """Print the demo model's mAP on the demo queries beside chance and the exact answer."""

    help = (
        "Embed the demo corpus with the demo model and print its mAP@k on the demo queries, "
        "beside that of a random order (its exact expectation) and of the exact answer: over the "
        "whole corpus, and within each query's species filter, as annotators see it."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--k", type=positive, default=50, help="the cut-off (default: 50)")
        parser.add_argument("--model", default="demo", help="the model (default: demo)")
        parser.add_argument(
            "--corpus",
            type=Path,
            metavar="DIR",
            default=Path(settings.VAR_DIR) / "demo",
            help="the demo corpus, drawn if it isn't there (default: %(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            encoder = load_encoder(options["model"])
        except ModelSpecError as error:
            raise CommandError(str(error)) from error
        corpus = options["corpus"]
        # Its list of images is the last file that drawing a corpus writes.
        if not (corpus / "train.json").is_file():
            write_corpus(corpus, progress=self._progress("drawn"))
        image_ids, vectors = self._embedded(encoder, corpus)
        texts = _stored(encoder.encode_texts([query.query_text for query in QUERIES]))
        scenes = read_scenes(corpus)
        whole: list[DemoScore] = []
        filtered: list[DemoScore] = []
        k = options["k"]
        self.stdout.write(f"AP@{k}: whole corpus, within the species filter, relevant images, text")
        for query, similarities in zip(QUERIES, texts @ vectors.T, strict=True):
            relevant = {number for number, scene in scenes.items() if query.matches(scene)}
            admitted = {number for number, scene in scenes.items() if query.admits(scene)}
            scored = demo_score(similarities, image_ids, relevant=relevant, k=k)
            narrow = demo_score(
                similarities, image_ids, relevant=relevant, candidates=admitted, k=k
            )
            if scored is None or narrow is None:
                self.stdout.write(f"  left out, no image answers it: {query.query_text}")
                continue
            whole.append(scored)
            filtered.append(narrow)
            self.stdout.write(_line(query, scored, narrow))
        if not whole:
            raise CommandError("No query has an answer in this corpus, so there is no mean.")
        self.stdout.write("")
        self.stdout.write(
            f"mAP@{k} on {len(whole)} queries, {len(image_ids)} images: "
            "whole corpus, within species filters"
        )
        names = (f"{options['model']} model", "random order", "exact answer")
        for name, over_all, narrowed in zip(
            names, mean_score(whole), mean_score(filtered), strict=True
        ):
            self.stdout.write(f"  {name:<14} {over_all:.4f}  {narrowed:.4f}")

    def _embedded(
        self, encoder: Encoder, corpus: Path
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Ids (n,) and stored vectors (n, d) of all images of the corpus."""
        records = _records(corpus)
        rows = []
        progress = self._progress("embedded")
        for start in range(0, len(records), BATCH):
            pictures = []
            for _, path in records[start : start + BATCH]:
                with Image.open(path) as picture:
                    pictures.append(picture.convert("RGB"))
            rows.append(_stored(encoder.encode_images(pictures)))
            progress(start + len(pictures), len(records))
        ids = np.array([image_id for image_id, _ in records], dtype=np.int64)
        return ids, np.concatenate(rows)

    def _progress(self, what: str) -> Callable[[int, int], None]:
        """Shows how far a step is: in place at a terminal, else once it is done."""

        def show(done: int, total: int) -> None:
            if self.stderr.isatty() or done == total:
                ending = "\n" if done == total else "\r"
                self.stderr.write(f"{what} {done} of {total} images", ending=ending)

        return show


def _records(corpus: Path) -> list[tuple[int, Path]]:
    """(image id, path) of every image that the corpus lists."""
    listed = json.loads((corpus / "train.json").read_text(encoding="utf-8"))["images"]
    return [(image["id"], corpus / image["file_name"]) for image in listed]


def _stored(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Vectors as the database keeps them, rounded to half precision."""
    return vectors.astype(np.float16).astype(np.float32)


def _line(query: DemoQuery, scored: DemoScore, narrow: DemoScore) -> str:
    return f"  {scored.model:.4f}  {narrow.model:.4f}  {scored.positives:>4}  {query.query_text}"
