"""What the corpus holds."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count

from retrieval.models import EmbeddingModel, Image, Species
from retrieval.selectors.species import species_with_counts

__all__ = ["CorpusSize", "ModelCoverage", "corpus_counts", "corpus_coverage", "species_with_counts"]


@dataclass(frozen=True)
class CorpusSize:
    images: int
    species: int
    families: int


@dataclass(frozen=True)
class ModelCoverage:
    """A model, and how many images it has embedded."""

    model: EmbeddingModel
    embedded: int


def corpus_counts() -> CorpusSize:
    """Count images, and the species and families in the corpus."""
    kinds = Species.objects.aggregate(species=Count("pk"), families=Count("family", distinct=True))
    unknown = Species.objects.filter(family="").exists()
    return CorpusSize(
        images=Image.objects.count(),
        species=kinds["species"],
        families=kinds["families"] - unknown,
    )


def corpus_coverage() -> list[ModelCoverage]:
    """Return each model with the number of images that it has embedded, by name."""
    models = EmbeddingModel.objects.annotate(embedded=Count("embeddings__image"))
    return [ModelCoverage(m, m.embedded) for m in models.order_by("name")]
