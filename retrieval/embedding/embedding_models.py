"""Embedding models: each has a partition of its own for its vectors."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import connection, transaction

from core.locks import lock_key, transaction_lock
from retrieval.embedding.models import EmbeddingModel
from retrieval.encoding.model_specs import describe


def embedding_model_get_or_create(
    *, name: str | None = None, dimension: int | None = None
) -> EmbeddingModel:
    """Return the model of that name (default: settings.EMBEDDING_MODEL).

    It and its partition are made once; without `dimension` the model's configuration tells it.
    Raises ModelSpecError for a name that is of no model.
    """
    name = name or settings.EMBEDDING_MODEL
    known = EmbeddingModel.objects.filter(name=name).first()
    if known is not None:
        return known
    if dimension is None:
        dimension = describe(name).dimension
    with transaction.atomic():
        # A partition locks the models' table against others that write there: two who had begun to
        # would wait for each other.
        transaction_lock(lock_key("embedding_models"))
        model, created = EmbeddingModel.objects.get_or_create(
            name=name, defaults={"dimension": dimension}
        )
        if created:
            _partition_create(model)
    return model


def embedding_model_freeze(*, model: EmbeddingModel) -> datetime:
    """Return a moment that parts the model's stored embeddings from those still to come.

    An insert holds the model's lock shared until it is committed and takes its `created_at` under
    it; this takes the lock for itself, for a moment: whatever was stored at or before the moment
    returned is committed by then, whatever is stored afterwards has a later `created_at`. Call it
    outside of a long transaction, since the lock is held until the transaction ends.
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
        # The model's row is new, so nothing can be in a table of its number: it is left from a
        # reset sequence.
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
