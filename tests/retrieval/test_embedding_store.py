"""Many embeddings at once: what is stored, what is skipped, what is refused."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from django.db import IntegrityError, connection, connections, transaction

from core.locks import transaction_lock
from retrieval.embedding.embedding_models import (
    embedding_model_get_or_create,
    embedding_model_lock,
)
from retrieval.embedding.models import Embedding
from retrieval.embedding.store import embeddings_copy
from retrieval.ranking.selectors import half_rounded
from tests.retrieval.making import embed_rows, image_row, random_vectors
from tests.threads import at_once

pytestmark = pytest.mark.django_db


def halves(count, dimension, seed=1):
    rows = random_vectors(count, dimension, seed)
    return np.array([half_rounded(row) for row in rows], dtype=np.float16)


@transaction.atomic
def store(model, image_ids, vectors, **options):
    transaction_lock(embedding_model_lock(model), shared=True)
    return embeddings_copy(model=model, image_ids=np.array(image_ids), vectors=vectors, **options)


@pytest.mark.parametrize("dimension", [3, 20])
@pytest.mark.parametrize("fresh", [False, True])
def test_vectors_come_back_bit_for_bit(dimension, fresh):
    model = embedding_model_get_or_create(name="m", dimension=dimension)
    wanted = halves(40, dimension)
    for number in range(40):
        image_row(number)
    assert store(model, np.arange(40)[::-1], wanted[::-1], fresh=fresh) == 40
    rows = Embedding.objects.filter(model=model).order_by("image_id")
    assert [row.image_id for row in rows] == list(range(40))
    assert np.array_equal(np.array([row.vector for row in rows], np.float16), wanted)
    assert len({row.created_at for row in rows}) == 1


@pytest.mark.parametrize("fresh", [False, True])
def test_what_is_embedded_already_is_skipped_and_stays(toy_model, fresh):
    embed_rows(toy_model, {2: [0, 0, 1]})
    before = Embedding.objects.get(image_id=2).created_at
    for number in (1, 3):
        image_row(number)
    vectors = np.array([[1, 0, 0]] * 3, dtype=np.float16)
    assert store(toy_model, [1, 2, 3], vectors, fresh=fresh) == 2
    kept = Embedding.objects.get(image_id=2)
    assert (kept.vector, kept.created_at) == ([0, 0, 1], before)
    assert store(toy_model, [1, 2, 3], vectors, fresh=fresh) == 0
    assert store(toy_model, [], vectors[:0], fresh=fresh) == 0


def test_an_image_given_twice_is_stored_once(toy_model):
    image_row(1)
    vectors = np.array([[1, 0, 0], [0, 1, 0]], dtype=np.float16)
    assert store(toy_model, [1, 1], vectors) == 1
    image_row(2)
    with pytest.raises(IntegrityError, match="pkey"):
        store(toy_model, [2, 2], vectors, fresh=True)


def test_two_copies_in_one_transaction_are_both_stored(toy_model):
    for number in (1, 2):
        image_row(number)
    with transaction.atomic():
        assert store(toy_model, [1], np.array([[1, 0, 0]], np.float16)) == 1
        assert store(toy_model, [1, 2], np.array([[0, 1, 0]] * 2, np.float16)) == 1
    assert Embedding.objects.get(image_id=1).vector == [1, 0, 0]


@pytest.mark.parametrize("fresh", [False, True])
def test_vectors_that_are_not_of_the_model_are_refused(toy_model, fresh):
    image_row(1)
    for wrong in (np.ones((1, 2), np.float16), np.ones((1, 3)), np.ones((2, 3), np.float16)):
        with pytest.raises(ValueError, match="vectors of 3 halves"):
            store(toy_model, [1], wrong, fresh=fresh)
    with pytest.raises(IntegrityError, match="unit_length"):
        store(toy_model, [1], np.ones((1, 3), np.float16), fresh=fresh)
    assert not Embedding.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_no_transaction_no_storing(toy_model):
    with pytest.raises(ValueError, match="within a transaction"):
        embeddings_copy(
            model=toy_model, image_ids=np.array([1]), vectors=np.zeros((1, 3), np.float16)
        )


@pytest.mark.django_db(transaction=True)
def test_two_that_store_the_same_images_at_once_store_each_once(toy_model):
    for number in range(200):
        image_row(number)
    vectors = np.tile(np.array([[1, 0, 0]], np.float16), (200, 1))
    stored = at_once(
        *[
            lambda ids=ids: store(toy_model, ids, vectors)
            for ids in (range(200), range(199, -1, -1))
        ]
    )
    assert sum(stored) == Embedding.objects.count() == 200
    connection.close()


@pytest.mark.django_db(transaction=True)
def test_models_made_at_once_do_not_wait_for_each_other():
    def make(name):
        try:
            start.wait()
            return embedding_model_get_or_create(name=name, dimension=3).pk
        finally:
            connections.close_all()

    names = ["one", "one", "two", "two"]
    for turn in range(3):
        start = threading.Barrier(len(names))
        with ThreadPoolExecutor(len(names)) as pool:
            made = list(pool.map(make, [f"{name} {turn}" for name in names]))
        assert made[0] == made[1] != made[2] == made[3]
