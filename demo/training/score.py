"""Prints a model's mAP@50 on the demo queries: `python -m demo.training.score`.

It also prints the exact expectation for a random order, over the whole corpus and within each
query's species filter, as annotators see it. It writes nothing but the demo corpus, if that is
missing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
import numpy.typing as npt
from django.conf import settings
from PIL import Image

from demo.corpus import write_corpus
from demo.queries import QUERIES, read_scenes
from evaluation.scoring.expectations import random_average_precision_at_k
from evaluation.scoring.metrics import average_precision_at_k
from releases.management.arguments import positive
from retrieval.encoding.encoders import Encoder, ModelSpecError, load_encoder
from retrieval.encoding.text import load_text_encoder

BATCH = 64


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the scores; SystemExit where the model can't be loaded or no query has an answer."""
    parser = argparse.ArgumentParser(prog="python -m demo.training.score", description=__doc__)
    parser.add_argument("--k", type=positive, default=50, help="the cut-off (default: 50)")
    parser.add_argument("--model", default="demo", help="the model (default: demo)")
    parser.add_argument(
        "--corpus",
        type=Path,
        metavar="DIR",
        default=Path(settings.VAR_DIR) / "demo",
        help="the demo corpus, drawn if it isn't there (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    corpus, k = options.corpus, options.k
    try:
        encoder = load_encoder(options.model)
    except ModelSpecError as error:
        raise SystemExit(str(error)) from error
    # Drawing a corpus writes the list of images last.
    if not (corpus / "train.json").is_file():
        write_corpus(corpus)
    image_ids, vectors = _embedded(encoder, corpus)
    text_encoder = load_text_encoder(options.model)
    texts = _stored(np.array([text_encoder.encode(query.query_text) for query in QUERIES]))
    scenes = read_scenes(corpus)
    scores = []
    print(f"AP@{k}: whole corpus, within the species filter, relevant images, text")
    for query, similarities in zip(QUERIES, texts @ vectors.T, strict=True):
        relevant = {number for number, scene in scenes.items() if query.matches(scene)}
        admitted = {number for number, scene in scenes.items() if query.admits(scene)}
        if not relevant:
            print(f"  left out, no image answers it: {query.query_text}")
            continue
        whole = average_precision(similarities, image_ids, relevant, scenes, k)
        narrow = average_precision(similarities, image_ids, relevant, admitted, k)
        scores.append((*whole, *narrow))
        print(f"  {whole[0]:.4f}  {narrow[0]:.4f}  {len(relevant):>4}  {query.query_text}")
    if not scores:
        raise SystemExit("No query has an answer in this corpus, so there is no mean.")
    model, chance, model_within, chance_within = map(fmean, zip(*scores, strict=True))
    print(
        f"\nmAP@{k} on {len(scores)} queries, {len(image_ids)} images: "
        "whole corpus, within species filters\n"
        f"  {options.model} model    {model:.4f}  {model_within:.4f}\n"
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
    is_candidate = np.isin(image_ids, list(candidates))
    ids = image_ids[is_candidate]
    hits = np.isin(ids, list(relevant))[np.lexsort((ids, -similarities[is_candidate]))]
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


if __name__ == "__main__":
    main()
