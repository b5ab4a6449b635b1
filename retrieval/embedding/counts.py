"""Models that have embeddings, and how many images of the corpus each has embedded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet

from retrieval.corpus.counts import number_of
from retrieval.corpus.models import ImageWithdrawal
from retrieval.embedding.models import Embedding, EmbeddingCount, EmbeddingModel

_WITHDRAWAL = ImageWithdrawal._meta.db_table
_EMBEDDING = Embedding._meta.db_table
_EMBEDDED = EmbeddingCount._meta.db_table

# Of one model, so that PostgreSQL plans for its partition alone.
_EMBEDDED_BY = f"""
SELECT coalesce((SELECT embedded FROM {_EMBEDDED} WHERE model_id = %s), 0)
     - (SELECT count(*) FROM {_WITHDRAWAL} w CROSS JOIN LATERAL
               (SELECT FROM {_EMBEDDING} WHERE model_id = %s AND image_id = w.image_id OFFSET 0) e
         WHERE w.restored_at IS NULL)
"""


def embedded_models() -> QuerySet[EmbeddingModel]:
    """Return the models that have embeddings, by name."""
    return EmbeddingModel.objects.filter(count__embedded__gt=0).order_by("name")


def has_embeddings(name: str) -> bool:
    """Whether the model of this name has embeddings."""
    return embedded_models().filter(name=name).exists()


def embedded_counts(models: Iterable[EmbeddingModel]) -> dict[int, int]:
    """Return by model key how many images of the corpus each model has embedded, without withdrawn
    ones. One SQL query per model.
    """
    return {model.pk: number_of(_EMBEDDED_BY, [model.pk, model.pk]) for model in models}


@dataclass(frozen=True)
class ModelCoverage:
    """A model, and how many images it has embedded."""

    model: EmbeddingModel
    embedded: int


def corpus_coverage() -> list[ModelCoverage]:
    """Return each model with the number of images in the corpus that it has embedded, by name."""
    models = list(EmbeddingModel.objects.order_by("name"))
    embedded = embedded_counts(models)
    return [ModelCoverage(model, embedded[model.pk]) for model in models]
