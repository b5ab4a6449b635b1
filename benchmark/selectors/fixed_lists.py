"""The fixed lists for re-ranking: the best images of the whole corpus for each query.

Source: Vendrow et al. 2024, section 3, INQUIRE-Rerank: the top 100 of one model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from django.db.models import Max

from benchmark.snapshot import FixedImage
from labeling.models import Candidate, CandidateList, Query
from retrieval.models import Embedding, EmbeddingModel, ImageWithdrawal
from retrieval.selectors.flags import is_withdrawn
from retrieval.selectors.ranking import rank_images, text_vector

FIXED_DEPTH: Final = 100


def rerank_models() -> list[EmbeddingModel]:
    """The models whose order can make fixed lists, those that embedded an image; by name."""
    models = EmbeddingModel.objects.order_by("name")
    return [model for model in models if model_has_embeddings(model)]


def model_has_embeddings(model: EmbeddingModel) -> bool:
    """Whether any image is embedded under the model."""
    return Embedding.objects.filter(model=model).exists()


def released_fixed_lists(model: EmbeddingModel) -> Iterator[list[FixedImage]]:
    """The fixed list of each completed query, by query id; each best first.

    Of all images that are embedded under the model and aren't withdrawn now. A query's candidate
    list that is of the same text, model and images gives its own first ranks; the others are ranked
    by an exact scan. Raises what `retrieval.encoders.load_encoder` raises for a model that cannot
    be loaded, where a text has to be embedded.
    """
    queries = (
        Query.objects.filter(state=Query.State.COMPLETE)
        .select_related("current_list")
        .order_by("query_id")
    )
    newest: datetime | None = None
    for query in list(queries):
        frozen = query.current_list
        rows: list[tuple[int, float]] = []
        vector: Sequence[float] | None = None
        if frozen is not None and frozen.embedding_model_id == model.pk:
            if frozen.text == query.text:
                vector = frozen.text_vector
            if vector is not None and not frozen.species_ids and frozen.size >= FIXED_DEPTH:
                newest = newest or _newest_embedding(model)
                if _same_images(frozen, newest):
                    rows = _first_candidates(frozen)
        if len(rows) < FIXED_DEPTH:
            yield fixed_list(model, query.query_id, query.text, vector)
        else:
            yield _numbered(query.query_id, rows)


def fixed_list(
    model: EmbeddingModel, query_id: int, text: str, vector: Sequence[float] | None = None
) -> list[FixedImage]:
    """The fixed list of a text by an exact scan of all images that are embedded under the model and
    aren't withdrawn now, best first; `vector` is the text's, where it is known. Raises as
    `released_fixed_lists`.
    """
    vector = vector or text_vector(model, text)
    rows = rank_images(model=model, text_vector=vector, limit=FIXED_DEPTH)
    return _numbered(query_id, rows)


def _numbered(query_id: int, rows: Sequence[tuple[int, float]]) -> list[FixedImage]:
    return [
        FixedImage(query_id=query_id, rank=rank, image_id=image_id, score=score)
        for rank, (image_id, score) in enumerate(rows, start=1)
    ]


def _same_images(frozen: CandidateList, newest: datetime) -> bool:
    """Whether no image came into the corpus since the list was frozen, nor came back to it."""
    if frozen.frozen_at is None or newest > frozen.frozen_at:
        return False
    back = ImageWithdrawal.objects.filter(
        withdrawn_at__lte=frozen.frozen_at, restored_at__gt=frozen.frozen_at
    )
    return not back.exists()


def _newest_embedding(model: EmbeddingModel) -> datetime:
    """When the last embedding under the model was stored; one scan."""
    found: datetime = Embedding.objects.filter(model=model).aggregate(at=Max("created_at"))["at"]
    return found


def _first_candidates(frozen: CandidateList) -> list[tuple[int, float]]:
    """(image id, score) of a list's first candidates that aren't withdrawn."""
    candidates = Candidate.objects.filter(~is_withdrawn("image"), list=frozen).order_by("rank")
    return list(candidates.values_list("image_id", "score")[:FIXED_DEPTH])
