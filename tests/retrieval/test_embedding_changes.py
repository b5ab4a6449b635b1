"""What triggers keep about embeddings: how many there are, which, and which were removed."""

import random
from datetime import UTC, datetime

import numpy as np
import pytest
from django.db import IntegrityError, connection, transaction

from core.locks import transaction_lock
from retrieval.corpus.models import Image
from retrieval.embedding.embedding_models import embedding_model_get_or_create, embedding_model_lock
from retrieval.embedding.models import Embedding, EmbeddingCount, EmbeddingRemoval
from retrieval.embedding.store import embeddings_copy
from tests.retrieval.making import embed_rows, image_row

pytestmark = pytest.mark.django_db


def one(query, *values):
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return cursor.fetchone()


def kept(model):
    count = EmbeddingCount.objects.filter(model=model).first()
    return (count.embedded, count.fingerprint) if count else (0, 0)


def counted(model):
    return one(
        "SELECT count(*), coalesce(sum(retrieval_embedding_mark(image_id, created_at)), 0) "
        "FROM retrieval_embedding WHERE model_id = %s",
        model.pk,
    )


def test_counts_and_fingerprints_follow_every_way_of_writing(toy_model):
    other = embedding_model_get_or_create(name="other", dimension=3)
    numbers = random.Random(5)
    for number in range(60):
        image_row(number)
    now = datetime.now(UTC)
    for turn in range(40):
        model = numbers.choice([toy_model, other])
        chosen = numbers.sample(range(60), 7)
        match turn % 4:
            case 0:
                Embedding.objects.bulk_create(
                    (
                        Embedding(model=model, image_id=i, vector=[1, 0, 0], created_at=now)
                        for i in chosen
                    ),
                    ignore_conflicts=True,
                )
            case 1 | 2:
                with transaction.atomic():
                    transaction_lock(embedding_model_lock(model), shared=True)
                    vectors = np.tile(np.array([[0, 1, 0]], np.float16), (7, 1))
                    embeddings_copy(
                        model=model,
                        image_ids=np.array(chosen),
                        vectors=vectors,
                        fresh=turn % 4 == 1,
                    )
            case 3:
                Embedding.objects.filter(image_id__in=chosen).delete()
        assert [kept(m) for m in (toy_model, other)] == [counted(m) for m in (toy_model, other)]
    assert kept(toy_model)[0] > 0
    assert kept(toy_model)[1] != kept(other)[1]


def test_a_removed_embedding_is_noted_with_its_moment_and_transaction(toy_model):
    embed_rows(toy_model, {1: [1, 0, 0], 2: [0, 1, 0]})
    at = Embedding.objects.get(image_id=1).created_at
    Image.objects.get(pk=1).delete()
    removal = EmbeddingRemoval.objects.get()
    assert (removal.model, removal.image_id, removal.embedded_at) == (toy_model, 1, at)
    assert removal.xid == one("SELECT pg_current_xact_id()::text::bigint")[0]
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM retrieval_embedding_{toy_model.pk}")
    assert list(EmbeddingRemoval.objects.values_list("image_id", flat=True).order_by("pk")) == [
        1,
        2,
    ]
    assert kept(toy_model) == (0, 0)


@pytest.mark.parametrize("change", ["vector = '[0,1,0]'", "created_at = now()", "image_id = 2"])
def test_an_embedding_is_never_changed(toy_model, change):
    embed_rows(toy_model, {1: [1, 0, 0]})
    image_row(2)
    with (
        pytest.raises(IntegrityError, match="never changed"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(f"UPDATE retrieval_embedding SET {change}")
    assert Embedding.objects.get().image_id == 1


@pytest.mark.parametrize("table", ["retrieval_embedding", "retrieval_embedding_{pk}"])
def test_an_emptied_table_counts_nothing(toy_model, table):
    embed_rows(toy_model, {1: [1, 0, 0]})
    assert kept(toy_model)[0] == 1
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"TRUNCATE {table.format(pk=toy_model.pk)}")
    assert kept(toy_model) == (0, 0)
    embed_rows(toy_model, {1: [1, 0, 0]})
    assert kept(toy_model) == counted(toy_model)


def test_a_deleted_model_takes_what_was_noted_with_it(toy_model):
    embed_rows(toy_model, {1: [1, 0, 0]})
    toy_model.delete()
    assert not Embedding.objects.exists()
    assert not EmbeddingCount.objects.exists()
