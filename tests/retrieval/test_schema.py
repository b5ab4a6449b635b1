"""The tables hold what the exact scan rests on."""

import pytest
from django.core.management import call_command
from django.db import IntegrityError, NotSupportedError, connection, transaction

from core import extensions
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.encoding.model_specs import ModelSpecError
from tests.retrieval.making import embed_rows, image_row, random_vectors

pytestmark = pytest.mark.django_db


def one(query, *values):
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return cursor.fetchone()[0]


@pytest.mark.parametrize("dimension", [3, 1024, 4000])
def test_vectors_lie_in_their_rows_and_nothing_is_toasted(dimension):
    model = embedding_model_get_or_create(name="m", dimension=dimension)
    embed_rows(model, dict(enumerate(random_vectors(5, dimension))))
    table = f"retrieval_embedding_{model.pk}"
    for relation in ("retrieval_embedding", table):
        storage = one(
            "SELECT attstorage FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attname = 'vector'",
            relation,
        )
        assert storage == "p"
    toast = one("SELECT reltoastrelid FROM pg_class WHERE oid = %s::regclass", table)
    size = one("SELECT pg_relation_size(%s)", toast) if toast else 0
    assert size == 0
    assert one("SELECT pg_relation_size(%s::regclass)", table) >= 5 * 2 * dimension


def test_each_model_has_a_partition_and_a_scan_reads_only_that():
    first = embedding_model_get_or_create(name="a", dimension=2)
    second = embedding_model_get_or_create(name="b", dimension=3)
    embed_rows(first, {1: [1, 0]})
    embed_rows(second, {1: [1, 0, 0]})
    assert one(f"SELECT count(*) FROM retrieval_embedding_{first.pk}") == 1
    with connection.cursor() as cursor:
        cursor.execute(
            "EXPLAIN SELECT vector FROM retrieval_embedding WHERE model_id = %s", [first.pk]
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert f"retrieval_embedding_{first.pk}" in plan
    assert f"retrieval_embedding_{second.pk}" not in plan


def test_the_configured_model_is_the_default_and_tells_its_dimension(settings, tiny_model):
    settings.EMBEDDING_MODEL = tiny_model
    model = embedding_model_get_or_create()
    assert (model.name, model.dimension) == (tiny_model, 16)
    with pytest.raises(ModelSpecError):
        embedding_model_get_or_create(name="nonsense")
    assert EmbeddingModel.objects.count() == 1


def test_a_partition_left_from_a_reset_sequence_is_replaced():
    model = embedding_model_get_or_create(name="a", dimension=2)
    next_id = model.pk + 1
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE retrieval_embedding_{next_id} "
            f"PARTITION OF retrieval_embedding FOR VALUES IN ({next_id})"
        )
        cursor.execute(
            "SELECT setval(pg_get_serial_sequence('retrieval_embeddingmodel', 'id'), %s)",
            [model.pk],
        )
    other = embedding_model_get_or_create(name="b", dimension=3)
    assert other.pk == next_id
    embed_rows(other, {1: [1, 0, 0]})


@pytest.mark.parametrize(
    ("vector", "constraint"),
    [("[1,0]", "dimension"), ("[1,1,0]", "unit_length"), ("[0,0,0]", "unit_length")],
)
def test_the_database_refuses_what_is_no_unit_vector_of_the_model(toy_model, vector, constraint):
    image_row(1)
    with (
        pytest.raises(IntegrityError, match=constraint),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "INSERT INTO retrieval_embedding VALUES (%s, 1, now(), %s)", [toy_model.pk, vector]
        )
    assert Embedding.objects.count() == 0


def test_an_image_is_embedded_once_by_a_model(toy_model):
    embed_rows(toy_model, {1: [1, 0, 0]})
    with pytest.raises(IntegrityError, match="pkey"), transaction.atomic():
        embed_rows(toy_model, {1: [0, 1, 0]})


@pytest.mark.parametrize(
    ("fields", "constraint"),
    [
        ({"latitude": 90.1}, "image_latitude_range"),
        ({"longitude": -181}, "image_longitude_range"),
        ({"width": 0}, "image_size_positive"),
    ],
)
def test_the_database_refuses_impossible_images(fields, constraint):
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        image_row(1, **fields)


def test_migrating_onto_an_old_pgvector_stops_with_the_reason(monkeypatch):
    monkeypatch.setattr(extensions, "OLDEST_PGVECTOR", (99, 0, 0))
    with pytest.raises(NotSupportedError, match=r"99\.0\.0 or newer is needed"):
        extensions.extensions_create(connection)


@pytest.mark.parametrize(
    ("installed", "says"),
    [
        ("0.8.4", None),
        ("0.10", None),
        ("1.0.0-dev", None),
        ("0.8.3", "has pgvector 0.8.3; 0.8.4 or newer"),
        ("0.8", "0.8.4"),
        (None, "no pgvector"),
    ],
)
def test_an_old_or_missing_pgvector_is_explained(installed: str | None, says: str | None) -> None:
    problem = extensions.pgvector_problem(installed)
    assert (problem is None) if says is None else says in (problem or "")


def test_models_and_migrations_agree() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
