"""Pooled lists as they are stored: their order from their models' rankings, and an image's ranks
under each model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.sql import fetch_all
from labeling.candidates.fusion import first_unjudged, fuse, put_first
from labeling.candidates.models import CandidateList, PoolRanking
from retrieval.embedding.models import EmbeddingModel

_RANKS = f"""
SELECT r.image_id, m.name, r.rank, r.score
  FROM {PoolRanking._meta.db_table} p
  JOIN {EmbeddingModel._meta.db_table} m ON m.id = p.embedding_model_id
 CROSS JOIN LATERAL unnest(p.image_ids, p.scores) WITH ORDINALITY r(image_id, score, rank)
 WHERE p.list_id = %s AND r.image_id = ANY(%s)
 ORDER BY r.image_id, p.place
"""


@dataclass(frozen=True, slots=True)
class ModelRank:
    """Where a model ranked an image for a list."""

    image_id: int
    model: str
    rank: int
    """From 1."""
    score: float
    """Cosine similarity to the text, -1..1."""


def model_ranks(candidate_list: CandidateList, image_ids: Iterable[int]) -> list[ModelRank]:
    """The ranks of these images under each model of a ready list, by image id and the models'
    order. For a pooled list they include images outside it that a model ranked. One SQL query.
    """
    ids = list(image_ids)
    if candidate_list.pool_models:
        return [ModelRank(*row) for row in fetch_all(_RANKS, [candidate_list.pk, ids])]
    rows = candidate_list.candidates.filter(image__in=ids).order_by("image_id")
    return [
        ModelRank(image_id, candidate_list.model_name, rank, score)
        for image_id, rank, score in rows.values_list("image_id", "rank", "score")
    ]


def pool_order(candidate_list: CandidateList) -> list[tuple[int, float]]:
    """(image id, fused score) of all images of a pooled list's rankings, in the list's order; the
    list holds the first `size` of them.
    """
    rankings = [ranking.image_ids for ranking in candidate_list.rankings.order_by("place")]
    return put_first(fuse(rankings), first_images(candidate_list, rankings))


def first_images(candidate_list: CandidateList, rankings: Sequence[Sequence[int]]) -> set[int]:
    """The images that come first in a list with these rankings (ids, in the models' order): the
    guaranteed images of added models that nobody had judged by the list's last event.
    """
    added = [
        ranking
        for name, ranking in zip(candidate_list.pool_models, rankings, strict=True)
        if name in candidate_list.added_models
    ]
    if not added:
        return set()
    events = candidate_list.query.judgment_events.filter(pk__lte=candidate_list.last_event)
    last = events.order_by("annotator_id", "image_id", "-pk").distinct("annotator_id", "image_id")
    standing = events.filter(pk__in=last.values("pk")).exclude(relevance="")
    return first_unjudged(added, set(standing.values_list("image_id", flat=True)))
