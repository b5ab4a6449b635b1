"""What the corpus holds."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q

from retrieval.models import EmbeddingModel, ImageWithdrawal, Species
from retrieval.selectors.flags import images_in_corpus
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
    """Count the images that aren't withdrawn, and the species and families in the corpus."""
    kinds = Species.objects.aggregate(species=Count("pk"), families=Count("family", distinct=True))
    unknown = Species.objects.filter(family="").exists()
    return CorpusSize(
        images=images_in_corpus().count(),
        species=kinds["species"],
        families=kinds["families"] - unknown,
    )


def corpus_coverage() -> list[ModelCoverage]:
    """Return each model with the number of images in the corpus that it has embedded, by name."""
    withdrawn = ImageWithdrawal.objects.filter(restored_at=None).values("image")
    models = EmbeddingModel.objects.annotate(
        embedded=Count("embeddings__image", filter=~Q(embeddings__image__in=withdrawn))
    )
    return [ModelCoverage(m, m.embedded) for m in models.order_by("name")]
