"""Which embedding models have embedded anything."""

from __future__ import annotations

from django.db.models import QuerySet

from retrieval.embedding.models import EmbeddingModel


def embedded_models() -> QuerySet[EmbeddingModel]:
    """The models under which any image is embedded, by name."""
    return EmbeddingModel.objects.filter(count__embedded__gt=0).order_by("name")


def has_embeddings(model: EmbeddingModel) -> bool:
    """Whether any image is embedded under the model."""
    return embedded_models().filter(pk=model.pk).exists()
