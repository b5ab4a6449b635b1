"""Free-text search of the corpus, in exact order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from retrieval.models import EmbeddingModel, Image
from retrieval.selectors import ranking


class SearchUnavailable(Exception):
    """The corpus cannot be searched now; the text says why and what to do."""


@dataclass(frozen=True)
class Hit:
    """One result; ranks start at 1, the score is the cosine similarity."""

    rank: int
    score: float
    image: Image


@dataclass(frozen=True)
class SearchResults:
    """The best hits, and how many embedded images the filter holds, both without withdrawn ones."""

    hits: list[Hit]
    total: int
    model: str


def search_images(
    *,
    text: str,
    species_ids: Sequence[int] | None = None,
    limit: int,
    model: str | None = None,
) -> SearchResults:
    """Return the images most similar to a text, within species if any are given; withdrawn ones are
    left out.

    `model` is by default settings.EMBEDDING_MODEL. Raises SearchUnavailable if it has embedded
    nothing, and what `retrieval.encoders.load_encoder` raises if it cannot be loaded.
    """
    name = model or settings.EMBEDDING_MODEL
    known = EmbeddingModel.objects.filter(name=name).first()
    if known is None or not known.embeddings.exists():
        raise SearchUnavailable(
            f"The corpus has not been embedded by {name} yet. An admin starts that on the corpus "
            "page, or with “python manage.py embed”."
        )
    ranked = ranking.rank_images(
        model=known,
        text_vector=ranking.text_vector(known, text),
        species_ids=species_ids,
        limit=limit,
    )
    images = Image.objects.select_related("species").prefetch_related("species__names")
    found = images.in_bulk([image_id for image_id, _ in ranked])
    hits = [
        Hit(rank, score, found[image_id])
        for rank, (image_id, score) in enumerate(ranked, start=1)
        if image_id in found
    ]
    total = ranking.corpus_counts(model=known, species_ids=species_ids).embedded
    return SearchResults(hits=hits, total=total, model=name)
