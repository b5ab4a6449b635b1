"""Search of the corpus by a text or an image: in exact order if that is fast enough, else by an
index.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from core.errors import Conflict
from retrieval.corpus.models import Image
from retrieval.embedding.counts import embedded_models
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.text_vectors import text_vector, unread_texts
from retrieval.ranking.selectors import (
    corpus_counts,
    image_vectors,
    rank_images,
    ranking_method,
)
from retrieval.search.approximate import rank_by_index
from retrieval.search.turns import search_turn
from retrieval.search.vector_indexes import VectorIndex, vector_index


class SearchUnavailable(Conflict):
    """The corpus cannot be searched now; the message says why and what to do."""


class SearchMethod(enum.StrEnum):
    """How a search's results were ordered."""

    MATRIX = "matrix"
    SCAN = "scan"
    INDEX = "index"

    @property
    def exact(self) -> bool:
        """Whether the results are the best ones, in the order of a candidate list."""
        return self is not SearchMethod.INDEX

    @property
    def words(self) -> str:
        """A description for people."""
        return {
            SearchMethod.MATRIX: "exact",
            SearchMethod.SCAN: "exact, by a scan of the database",
            SearchMethod.INDEX: "approximate, by an index: some of the best may be missing",
        }[self]


@dataclass(frozen=True)
class Hit:
    """One result; ranks start at 1, the score is the cosine similarity."""

    rank: int
    score: float
    image: Image


@dataclass(frozen=True)
class SearchResults:
    """The best hits, the number of embedded images within the filter (both without withdrawn
    images), how the hits were found, and in how many seconds.
    """

    hits: list[Hit]
    total: int
    model: str
    method: SearchMethod
    unread: str
    """The end of the text that the model doesn't read; empty where it reads all."""
    seconds: float


@dataclass(frozen=True)
class SearchRanking:
    """As `SearchResults`, with (image id, score) in place of the hits."""

    ranking: list[tuple[int, float]]
    total: int
    model: str
    method: SearchMethod
    unread: str
    seconds: float


def search_images(
    *,
    text: str = "",
    like: int | None = None,
    species_ids: Sequence[int] | None = None,
    limit: int,
    model: str | None = None,
    person: int | None = None,
) -> SearchResults:
    """Return the images that `search_ranking` ranks first, with their species."""
    found = search_ranking(
        text=text, like=like, species_ids=species_ids, limit=limit, model=model, person=person
    )
    images = Image.objects.select_related("species").prefetch_related("species__names")
    by_id = images.in_bulk([image_id for image_id, _ in found.ranking])
    hits = [
        Hit(rank, score, by_id[image_id])
        for rank, (image_id, score) in enumerate(found.ranking, start=1)
        if image_id in by_id
    ]
    return SearchResults(hits, found.total, found.model, found.method, found.unread, found.seconds)


def search_ranking(
    *,
    text: str = "",
    like: int | None = None,
    species_ids: Sequence[int] | None = None,
    matching: tuple[str, Sequence[Any]] | None = None,
    offset: int = 0,
    limit: int,
    model: str | None = None,
    person: int | None = None,
    has_left: Callable[[], bool] = lambda: False,
) -> SearchRanking:
    """Return the images most similar to a text, or to the image with the id `like`, itself left
    out, behind the first `offset`; within species if any are given and a condition (see
    `CorpusFilter`), without withdrawn ones.

    Exact by the model's packed matrix if there is one; else, if the filter holds more images than
    settings.SEARCH_EXACT_IMAGES, approximate by the model's index if there is one and no condition;
    else exact by a scan of the database. Without a matrix a `person` (a
    user's key) has one search at a time. `model` is by default the model in use. Once `has_left()`
    is true, the wait for the text's vector ends.

    Raises SearchUnavailable if the model has embedded no image, or not this one, SearchTooSlow and
    SearchBusy (see `search_turn`), and the errors of `text_vector` if the text can't be encoded.
    """
    began = time.monotonic()
    name = model or model_in_use()
    embedding_model = embedded_models().filter(name=name).first()
    if embedding_model is None:
        raise SearchUnavailable(
            f"The corpus has not been embedded by {name} yet. An admin starts that on the page "
            "“Models”, or with “python manage.py embed”."
        )
    if like is None:
        vector = text_vector(
            embedding_model, text, patience=settings.SEARCH_TIMEOUT, has_left=has_left
        )
    else:
        vector = _image_vector(embedding_model, like)
    # The image itself is among the most similar.
    wanted = offset + limit + (like is not None)
    method, ranking, total = _rank(embedding_model, vector, species_ids, matching, wanted, person)
    ranking = [scored for scored in ranking if scored[0] != like]
    return SearchRanking(
        ranking=ranking[offset : offset + limit],
        total=total,
        model=name,
        method=method,
        unread=unread_texts(embedding_model, [text]).get(text, "") if like is None else "",
        seconds=time.monotonic() - began,
    )


def _image_vector(model: EmbeddingModel, image_id: int) -> list[float]:
    ids, vectors = image_vectors(model=model, image_ids=[image_id])
    if not len(ids):
        raise SearchUnavailable(f"Image {image_id} has not been embedded by {model} yet.")
    return [float(number) for number in vectors[0]]


def _rank(
    model: EmbeddingModel,
    vector: Sequence[float],
    species_ids: Sequence[int] | None,
    matching: tuple[str, Sequence[Any]] | None,
    limit: int,
    person: int | None,
) -> tuple[SearchMethod, list[tuple[int, float]], int]:
    """Return the method, (image id, score) of the best images, and the filter's size."""
    matrix = ranking_method(model) == "matrix"
    index = None if matrix or matching is not None else _usable_index(model)
    with search_turn(person=None if matrix else person):
        total = corpus_counts(model=model, species_ids=species_ids, matching=matching).embedded
        if index is not None and total > settings.SEARCH_EXACT_IMAGES:
            ranking = rank_by_index(
                model=model,
                index=index,
                text_vector=vector,
                species_ids=species_ids,
                limit=limit,
            )
            # With a narrow filter the scan of the index may end too early.
            if len(ranking) >= min(limit, total):
                return SearchMethod.INDEX, ranking, total
        ranking = rank_images(
            model=model,
            text_vector=vector,
            species_ids=species_ids,
            matching=matching,
            limit=limit,
        )
        return SearchMethod.MATRIX if matrix else SearchMethod.SCAN, ranking, total


def _usable_index(model: EmbeddingModel) -> VectorIndex | None:
    index = vector_index(model)
    return index if index is not None and index.ready else None
