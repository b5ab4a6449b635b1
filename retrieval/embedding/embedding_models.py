"""Creation and locking of embedding models, each with a partition for its vectors."""

from __future__ import annotations

from datetime import datetime

from django.db import connection, transaction

from core.locks import lock_key, transaction_lock
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import EmbeddingModel
from retrieval.encoding.model_specs import ModelSpecError, describe, described_here


class NotFetched(ModelSpecError):
    """A model's configuration was never fetched to this machine, which a job does."""

    def __init__(self, spec: str) -> None:
        super().__init__(spec, "it isn't fetched yet: a job that measures or embeds does that")


def embedding_model_get_or_create(
    *, name: str | None = None, dimension: int | None = None
) -> EmbeddingModel:
    """Return the model of that name (default: the model in use).

    A new model gets a partition; `dimension` is by default that of the model's configuration, which
    may be fetched. Raises ModelSpecError for an unknown name.
    """
    name = name or model_in_use()
    known = EmbeddingModel.objects.filter(name=name).first()
    if known is not None:
        return known
    if dimension is None:
        dimension = describe(name).dimension
    with transaction.atomic():
        # Creating a partition locks the models' table against writes: without this lock two
        # transactions could deadlock.
        transaction_lock(lock_key("embedding_models"))
        model, created = EmbeddingModel.objects.get_or_create(
            name=name, defaults={"dimension": dimension}
        )
        if created:
            _partition_create(model)
    return model


@transaction.atomic
def model_use(*, name: str) -> EmbeddingModel:
    """Make a model the one in use, everywhere from now on; lists that are frozen stay as they are.

    ModelSpecError: no model is called so; NotFetched: that isn't known without a connection.
    """
    dimension = None
    if not EmbeddingModel.objects.filter(name=name).exists():
        if (about := described_here(name)) is None:
            raise NotFetched(name)
        dimension = about.dimension
    model = embedding_model_get_or_create(name=name, dimension=dimension)
    transaction_lock(lock_key("model_in_use"))
    EmbeddingModel.objects.filter(in_use=True).exclude(pk=model.pk).update(in_use=False)
    EmbeddingModel.objects.filter(pk=model.pk).update(in_use=True)
    model.in_use = True
    return model


def embedding_model_freeze(*, model: EmbeddingModel) -> datetime:
    """Return a moment that separates the model's stored embeddings from later ones.

    An insert takes its `created_at` under the model's lock and holds it shared until it is
    committed; this function takes the lock exclusively. So every embedding with a `created_at` up
    to the returned moment is committed, and later ones get a later `created_at`. Call it outside of
    long transactions, since the lock is held until the transaction ends.
    """
    with transaction.atomic():
        transaction_lock(embedding_model_lock(model))
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            moment: datetime = cursor.fetchone()[0]
    return moment


def embedding_model_lock(model: EmbeddingModel) -> int:
    """Return the number of the lock that inserts of the model's embeddings share."""
    return lock_key("embedding_model", model.pk)


def _partition_create(model: EmbeddingModel) -> None:
    table, dimension = f"retrieval_embedding_{int(model.pk)}", int(model.dimension)
    with connection.cursor() as cursor:
        # The model's row is new, so a table with its number is left from a reset sequence.
        cursor.execute(f"DROP TABLE IF EXISTS {table}")
        cursor.execute("DELETE FROM retrieval_embeddingremoval WHERE model_id = %s", [model.pk])
        cursor.execute(
            f"CREATE TABLE {table} PARTITION OF retrieval_embedding ("
            f" CONSTRAINT {table}_dimension CHECK (vector_dims(vector) = {dimension}),"
            f" CONSTRAINT {table}_unit_length CHECK (abs(l2_norm(vector) - 1) < 0.01)"
            f") FOR VALUES IN ({int(model.pk)})"
        )
        cursor.execute(f"ALTER TABLE {table} ALTER COLUMN vector SET STORAGE PLAIN")
        cursor.execute("SELECT retrieval_embedding_watch(%s::regclass, %s)", [table, model.pk])
