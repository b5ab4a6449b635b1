"""The approximate index of a model's embeddings, for the images' page."""

from __future__ import annotations

from django import template

from retrieval.embedding.models import EmbeddingModel
from retrieval.search import vector_indexes as selectors
from retrieval.search.vector_indexes import VectorIndex

register = template.Library()


@register.simple_tag
def vector_indexes() -> dict[int, VectorIndex]:
    """The index of each model that has one, by the model's key."""
    return selectors.vector_indexes()


@register.filter
def index_of(indexes: dict[int, VectorIndex], model: EmbeddingModel) -> VectorIndex | None:
    """Return the model's index from `vector_indexes`."""
    return indexes.get(model.pk)
