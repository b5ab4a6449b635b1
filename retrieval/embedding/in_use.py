"""Which model is in use: the one that orders new candidate lists and answers searches."""

from __future__ import annotations

from django.conf import settings

from retrieval.embedding.counts import has_embeddings
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.recommending import LARGE, recommended_models


def model_in_use() -> str:
    """Return the name of the model that an admin chose; before that settings.EMBEDDING_MODEL, or
    where that is empty the one that suits the workers' machines.

    Every process asks the database, so that a change needs no restart.
    """
    chosen = EmbeddingModel.objects.filter(in_use=True).values_list("name", flat=True).first()
    if name := chosen or str(settings.EMBEDDING_MODEL):
        return name
    # Where nothing was set, earlier versions embedded with the large one on all machines.
    return LARGE.name if has_embeddings(LARGE.name) else recommended_models()[0].name
