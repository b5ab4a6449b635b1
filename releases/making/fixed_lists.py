"""The fixed lists for re-ranking: the best images of the whole corpus for each query; and vectors
of the queries' texts.

Source: Vendrow et al. 2024, section 3, INQUIRE-Rerank: the top 100 of one model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import numpy as np
from django.db.models import Max

from labeling.candidates.models import Candidate, CandidateList
from labeling.queries.models import Benchmark, Query
from releases.making.labels import complete_queries
from releases.snapshot.snapshot import FixedImage, QueryVector
from retrieval.corpus.models import ImageWithdrawal
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.embedding.text_vectors import text_vectors
from retrieval.flags.selectors import is_withdrawn
from retrieval.ranking.batches import in_batches, vectors_at_once
from retrieval.ranking.selectors import rank_images_many

FIXED_DEPTH: Final = 100


def released_fixed_lists(
    model: EmbeddingModel, benchmark: Benchmark | None = None
) -> Iterator[list[FixedImage]]:
    """The fixed list of each completed query, by query id; each best first.

    It ranks all images of the benchmark that are embedded under the model and aren't withdrawn now.
    A query's candidate list of the same text, model and images gives its own first ranks; the other
    queries are ranked exactly, many in one pass where the model's matrix is there. Raises as
    `text_vectors`.
    """
    queries = complete_queries(benchmark).select_related("current_list")
    species_ids = benchmark.species_ids if benchmark else []
    # A look into the index of the moments.
    newest = Embedding.objects.filter(model=model).aggregate(at=Max("created_at"))["at"]
    for batch in in_batches(list(queries), vectors_at_once(model)):
        rows = {
            query.query_id: _own_candidates(query, model, newest, species_ids) for query in batch
        }
        unranked = [query for query in batch if len(rows[query.query_id]) < FIXED_DEPTH]
        vectors = text_vectors(model, [query.text for query in unranked])
        ranked = rank_images_many(
            model=model, text_vectors=vectors, species_ids=species_ids, limit=FIXED_DEPTH
        )
        rows |= {query.query_id: best for query, best in zip(unranked, ranked, strict=True)}
        yield from (_fixed_images(query_id, best) for query_id, best in rows.items())


def released_vectors(
    model: EmbeddingModel | None, benchmark: Benchmark | None = None
) -> Iterator[QueryVector]:
    """The vectors of the completed queries' texts, by query id and model: those that ordered the
    candidate lists, and those under the model of the fixed lists. Raises as `text_vectors`.
    """
    queries = list(complete_queries(benchmark).select_related("current_list__embedding_model"))
    fixed = text_vectors(model, [query.text for query in queries]) if model else []
    for number, query in enumerate(queries):
        texts_and_vectors = {model.name: (query.text, fixed[number])} if model else {}
        frozen = query.current_list
        if frozen is not None and frozen.embedding_model and frozen.text_vector is not None:
            vectors = {frozen.embedding_model.name: frozen.text_vector}
            rankings = frozen.rankings.values_list("embedding_model__name", "text_vector")
            for name, of_text in (vectors | dict(rankings)).items():
                vector = np.array(of_text, np.float16).astype(float).tolist()
                texts_and_vectors[name] = (frozen.text, vector)
        for name, (text, vector) in sorted(texts_and_vectors.items()):
            yield QueryVector(query_id=query.query_id, model=name, text=text, vector=vector)


def fixed_lists(
    model: EmbeddingModel, texts: Sequence[tuple[int, str]]
) -> Iterator[list[FixedImage]]:
    """The fixed list of each (query id, text): exact, of all images that are embedded under the
    model and aren't withdrawn now, best first. Raises as `released_fixed_lists`.
    """
    for batch in in_batches(texts, vectors_at_once(model)):
        vectors = text_vectors(model, [text for _, text in batch])
        ranked = rank_images_many(model=model, text_vectors=vectors, limit=FIXED_DEPTH)
        for (query_id, _), rows in zip(batch, ranked, strict=True):
            yield _fixed_images(query_id, rows)


def _own_candidates(
    query: Query, model: EmbeddingModel, newest: datetime | None, species_ids: list[int]
) -> list[tuple[int, float]]:
    """(image id, score) of the first candidates of the query's list that aren't withdrawn, if the
    list ranks all present images of these species (empty for the whole corpus); else none.
    """
    frozen = query.current_list
    if frozen is None or frozen.embedding_model_id != model.pk or frozen.text != query.text:
        return []
    if frozen.pool_models or frozen.species_ids != species_ids or frozen.size < FIXED_DEPTH:
        return []
    if not _same_images(frozen, newest):
        return []
    candidates = Candidate.objects.filter(~is_withdrawn("image"), list=frozen).order_by("rank")
    return list(candidates.values_list("image_id", "score")[:FIXED_DEPTH])


def _fixed_images(query_id: int, rows: Sequence[tuple[int, float]]) -> list[FixedImage]:
    return [
        FixedImage(query_id=query_id, rank=rank, image_id=image_id, score=score)
        for rank, (image_id, score) in enumerate(rows, start=1)
    ]


def _same_images(frozen: CandidateList, newest: datetime | None) -> bool:
    """Whether no image was embedded or restored since the list was frozen."""
    if frozen.frozen_at is None or newest is None or newest > frozen.frozen_at:
        return False
    restored = ImageWithdrawal.objects.filter(
        withdrawn_at__lte=frozen.frozen_at, restored_at__gt=frozen.frozen_at
    )
    return not restored.exists()
