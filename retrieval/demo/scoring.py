"""Orders of the demo collection by a model, beside the exact answers; the metric is elsewhere."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image

from retrieval.demo.queries import QUERIES, DemoQuery, read_scenes

_BATCH = 64


class ImageTextEncoder(Protocol):
    """What scoring needs of an encoder."""

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Return float32 (n, d) unit vectors."""

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 (n, d) unit vectors."""


@dataclass(frozen=True)
class QueryRanking:
    """A query's candidates in some order.

    ``image_ids`` is int64 (n,), ``relevant`` bool (n,) in the same order, and
    ``total_relevant`` the number of true answers.
    """

    query: DemoQuery
    image_ids: np.ndarray
    relevant: np.ndarray
    total_relevant: int


def encode_corpus(corpus_dir: Path, encoder: ImageTextEncoder) -> tuple[np.ndarray, np.ndarray]:
    """Return the image ids, int64 (n,), and their vectors, float32 (n, d).

    FileNotFoundError where the directory holds no finished corpus.
    """
    listed = json.loads((corpus_dir / "train.json").read_text(encoding="utf-8"))["images"]
    rows = []
    for start in range(0, len(listed), _BATCH):
        images = []
        for record in listed[start : start + _BATCH]:
            with Image.open(corpus_dir / record["file_name"]) as image:
                images.append(image.convert("RGB"))
        rows.append(encoder.encode_images(images))
    return np.array([record["id"] for record in listed], dtype=np.int64), np.concatenate(rows)


def rank(
    query: DemoQuery, corpus_dir: Path, image_ids: np.ndarray, scores: np.ndarray
) -> QueryRanking:
    """Order the query's candidates by falling score, (n,) aligned with ``image_ids``."""
    scenes = read_scenes(corpus_dir)
    matches = query.matches
    order = np.lexsort((image_ids, -scores))
    kept = [int(image_ids[place]) for place in order if query.admits(scenes[int(image_ids[place])])]
    relevant = np.array([matches(scenes[image_id]) for image_id in kept], dtype=bool)
    return QueryRanking(query, np.array(kept, dtype=np.int64), relevant, int(relevant.sum()))


def rank_by_model(
    corpus_dir: Path, encoder: ImageTextEncoder, queries: Iterable[DemoQuery] = QUERIES
) -> list[QueryRanking]:
    """Order every query's candidates by the model's similarity."""
    image_ids, pictures = encode_corpus(corpus_dir, encoder)
    chosen = list(queries)
    texts = encoder.encode_texts([query.text for query in chosen])
    return [
        rank(query, corpus_dir, image_ids, pictures @ text)
        for query, text in zip(chosen, texts, strict=True)
    ]


def rank_at_random(
    corpus_dir: Path, seed: int, queries: Iterable[DemoQuery] = QUERIES
) -> list[QueryRanking]:
    """Order every query's candidates at random: the floor that a model must beat."""
    rng = np.random.default_rng(seed)
    image_ids = _all_ids(corpus_dir)
    return [rank(query, corpus_dir, image_ids, rng.random(len(image_ids))) for query in queries]


def rank_exactly(corpus_dir: Path, queries: Iterable[DemoQuery] = QUERIES) -> list[QueryRanking]:
    """Put every query's true answers first: the ceiling, whose AP is 1."""
    scenes = read_scenes(corpus_dir)
    image_ids = _all_ids(corpus_dir)
    ordered = []
    for query in queries:
        truth = [float(query.matches(scenes[int(image_id)])) for image_id in image_ids]
        ordered.append(rank(query, corpus_dir, image_ids, np.array(truth)))
    return ordered


def _all_ids(corpus_dir: Path) -> np.ndarray:
    with (corpus_dir / "scenes.csv").open(newline="", encoding="utf-8") as lines:
        return np.array([int(row["image_id"]) for row in csv.DictReader(lines)], dtype=np.int64)
