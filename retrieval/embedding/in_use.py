"""Which model is in use: the one that orders new candidate lists and answers searches."""

from __future__ import annotations

from django.conf import settings

from retrieval.embedding.models import EmbeddingModel


def model_in_use() -> str:
    """Return the name of the model that an admin chose; before that, settings.EMBEDDING_MODEL.

    Every process asks the database, so that a change needs no restart.
    """
    chosen = EmbeddingModel.objects.filter(in_use=True).values_list("name", flat=True).first()
    return chosen or str(settings.EMBEDDING_MODEL)
