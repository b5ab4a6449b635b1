"""Makes images with embeddings for the tests of packed matrices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from django.db import connection, transaction

from core.locks import transaction_lock
from retrieval.corpus.models import Image, Species
from retrieval.embedding.embedding_models import embedding_model_lock
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.store import embeddings_copy
from retrieval.ranking.selectors import half_rounded, rank_images
from tests.retrieval.making import new_image, random_vectors


def images(numbers: Iterable[int], species: Species | None = None) -> None:
    """Images in the database without files."""
    Image.objects.bulk_create(new_image(number, species=species) for number in numbers)


@transaction.atomic
def embed(model: EmbeddingModel, numbers: Any, vectors: Any) -> int:
    """Store the vectors of images as jobs and imports do."""
    transaction_lock(embedding_model_lock(model), shared=True)
    halves = np.array([half_rounded(vector) for vector in vectors], np.float16)
    return embeddings_copy(model=model, image_ids=np.array(numbers, np.int64), vectors=halves)


def same_as_scan(model: EmbeddingModel, query: Any, **options: Any) -> list[tuple[int, float]]:
    """A ranking, after a look that the database's own scan gives the same."""
    options = {"limit": None, **options}
    wanted = rank_images(model=model, text_vector=query, scan=True, **options)
    found = rank_images(model=model, text_vector=query, **options)
    assert found == wanted
    return found


def vectors_like(kind: str, count: int, dimension: int, seed: int = 1) -> np.ndarray:
    """Vectors with ties, near ties, zeros and repeats, as well as any."""
    rows = random_vectors(count, dimension, seed)
    if kind == "ties":
        rows = rows[np.arange(count) % 7]
    elif kind == "sparse":
        rows[np.abs(rows) < 1.0] = 0
        rows[:, 0] += 1e-3
    elif kind == "close":
        rows = rows[:1] + 1e-3 * rows
    return rows


def without_triggers(*statements: str) -> None:
    """Change tables as nobody should: no trigger takes notice."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        for statement in statements:
            cursor.execute(statement)
        cursor.execute("SET session_replication_role = DEFAULT")
