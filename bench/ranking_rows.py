"""A corpus of clustered vectors, each of an image of a species, for the benchmark of ranking.

Vectors of pictures lie in clusters, so that random directions would make ranking look easier than
it is. Django must be set up on a database of the benchmark's own before `fill` is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

MODEL: Final = "clustered"
CENTRES: Final = 2000
SPECIES_IMAGES: Final = 500
SPECIES_OF_A_GENUS: Final = 5
ROWS_AT_A_TIME: Final = 20_000
#: How long the noise is beside the centre: two vectors of a cluster have a cosine of about 0.5.
NOISE: Final = 1.0
_SEED: Final = 7


def clustered(
    count: int, dimension: int, *, seed: int, at_a_time: int = ROWS_AT_A_TIME
) -> Iterator[NDArray[np.float16]]:
    """`count` vectors (n, dimension) around CENTRES points of the unit sphere, `at_a_time` rows at
    a time: of unit length, rounded to half precision, the same for the same seed.
    """
    centres = np.random.default_rng(_SEED).normal(size=(CENTRES, dimension))
    centres = (centres / np.linalg.norm(centres, axis=1, keepdims=True)).astype(np.float32)
    drawn = np.random.default_rng(seed)
    for start in range(0, count, at_a_time):
        rows = min(at_a_time, count - start)
        wide = drawn.standard_normal((rows, dimension), dtype=np.float32)
        wide *= NOISE / np.sqrt(dimension)
        wide += centres[drawn.integers(CENTRES, size=rows)]
        wide /= np.linalg.norm(wide, axis=1, keepdims=True)
        yield wide.astype(np.float16)


def query_vectors(count: int, dimension: int) -> NDArray[np.float16]:
    """`count` vectors (count, dimension) to ask with, from the same clusters."""
    [vectors] = clustered(count, dimension, seed=_SEED + 2, at_a_time=count)
    return vectors


def fill(*, images: int, dimension: int) -> None:
    """Fill an empty, migrated database: `images` with ids from 1, SPECIES_IMAGES to a species and
    SPECIES_OF_A_GENUS species to a genus, and the embedding of each under MODEL.
    """
    from django.db import connection, transaction

    from core.locks import transaction_lock
    from retrieval.corpus.models import Species
    from retrieval.embedding.embedding_models import (
        embedding_model_get_or_create,
        embedding_model_lock,
    )
    from retrieval.embedding.store import embeddings_copy

    species = -(-images // SPECIES_IMAGES)
    made = Species.objects.bulk_create(
        Species(
            scientific_name=f"Genus{number // SPECIES_OF_A_GENUS} species{number}",
            genus=f"Genus{number // SPECIES_OF_A_GENUS}",
        )
        for number in range(species)
    )
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retrieval_image (id, dataset, source_id, file_name, sha256, format, width,"
            " height, size_bytes, species_id, license, license_url, rights_holder, created_at) "
            "SELECT i, 'rows', i::text, 'train/' || i || '.jpg', lpad(to_hex(i), 64, '0'), 'JPEG',"
            " 500, 375, 60000, %s + i %% %s, '', '', '', now() FROM generate_series(1, %s) i",
            [made[0].pk, species, images],
        )
    model = embedding_model_get_or_create(name=MODEL, dimension=dimension)
    first = 1
    for vectors in clustered(images, dimension, seed=_SEED + 1):
        with transaction.atomic():
            transaction_lock(embedding_model_lock(model), shared=True)
            ids = np.arange(first, first + len(vectors), dtype=np.int64)
            embeddings_copy(model=model, image_ids=ids, vectors=vectors, fresh=True)
        first += len(vectors)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
