"""`manage.py score_demo_model`."""

import json
from collections.abc import Collection
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from PIL import Image

from benchmark.management.arguments import positive
from benchmark.scoring.expectations import random_average_precision_at_k
from benchmark.scoring.metrics import average_precision_at_k
from demo.corpus import write_corpus
from demo.queries import QUERIES, read_scenes
from retrieval.encoding.encoders import Encoder, ModelSpecError, load_encoder
from retrieval.encoding.text import load_text_encoder

BATCH = 64


class Command(BaseCommand):
    """Print the demo model's mAP on the demo queries, and that of chance."""

    help = (
        "Embed the demo corpus with the demo model and print its mAP@k on the demo queries, "
        "beside that of a random order (its exact expectation): over the whole corpus, and within "
        "each query's species filter, as annotators see it."
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
        corpus, k = options["corpus"], options["k"]
        # Its list of images is the last file that drawing a corpus writes.
        if not (corpus / "train.json").is_file():
            write_corpus(corpus)
        image_ids, vectors = _embedded(encoder, corpus)
        text_encoder = load_text_encoder(options["model"])
        texts = _stored(np.array([text_encoder.encode(query.query_text) for query in QUERIES]))
        scenes = read_scenes(corpus)
        scores = []
        self.stdout.write(f"AP@{k}: whole corpus, within the species filter, relevant images, text")
        for query, similarities in zip(QUERIES, texts @ vectors.T, strict=True):
            relevant = {number for number, scene in scenes.items() if query.matches(scene)}
            admitted = {number for number, scene in scenes.items() if query.admits(scene)}
            if not relevant:
                self.stdout.write(f"  left out, no image answers it: {query.query_text}")
                continue
            whole = average_precision(similarities, image_ids, relevant, scenes, k)
            narrow = average_precision(similarities, image_ids, relevant, admitted, k)
            scores.append((*whole, *narrow))
            self.stdout.write(
                f"  {whole[0]:.4f}  {narrow[0]:.4f}  {len(relevant):>4}  {query.query_text}"
            )
        if not scores:
            raise CommandError("No query has an answer in this corpus, so there is no mean.")
        model, chance, model_within, chance_within = map(fmean, zip(*scores, strict=True))
        self.stdout.write(
            f"\nmAP@{k} on {len(scores)} queries, {len(image_ids)} images: "
            "whole corpus, within species filters\n"
            f"  {options['model']} model    {model:.4f}  {model_within:.4f}\n"
            f"  random order  {chance:.4f}  {chance_within:.4f}"
        )


def average_precision(
    similarities: npt.NDArray[np.floating],
    image_ids: npt.NDArray[np.int64],
    relevant: Collection[int],
    candidates: Collection[int],
    k: int,
) -> tuple[float, float]:
    """AP@k of the candidates by similarity (n,), ties by image id, and its expectation over all
    orders."""
    kept = np.isin(image_ids, list(candidates))
    ids = image_ids[kept]
    hits = np.isin(ids, list(relevant))[np.lexsort((ids, -similarities[kept]))]
    total = int(hits.sum())
    chance = random_average_precision_at_k(total, len(ids), k)
    return float(average_precision_at_k(hits, total, k)), float(chance)


def _embedded(
    encoder: Encoder, corpus: Path
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Ids (n,) and stored vectors (n, d) of all images of the corpus."""
    images = json.loads((corpus / "train.json").read_text(encoding="utf-8"))["images"]
    rows = []
    for start in range(0, len(images), BATCH):
        files = [corpus / image["file_name"] for image in images[start : start + BATCH]]
        rows.append(_stored(encoder.encode_images([Image.open(path) for path in files])))
    return np.array([image["id"] for image in images], dtype=np.int64), np.concatenate(rows)


def _stored(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Vectors as the database keeps them, rounded to half precision."""
    return vectors.astype(np.float16).astype(np.float32)
