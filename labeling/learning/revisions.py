"""Making and verifying revisions of the order that learns, their queues, and who may choose it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from core.access import Role, at_least
from core.errors import Conflict
from core.locks import lock_key, transaction_lock
from core.sql import fetch_all
from labeling.candidates.models import Candidate, CandidateList
from labeling.candidates.selectors import RANKING, ranking_checksum
from labeling.candidates.services import lock_query
from labeling.judging.consensus import Vote, consensus_by_key
from labeling.judging.models import JudgmentEvent
from labeling.judging.writer import lock_annotator
from labeling.learning.features import Feature, feature_of
from labeling.learning.models import Revision
from labeling.learning.ridge import (
    PoolMoments,
    agree,
    direction_and_weight,
    frozen_turn,
    interleave,
    learned_indices,
    pool_moments,
)
from labeling.queries.models import Query
from retrieval.corpus.counts import withdrawal_condition
from retrieval.corpus.models import ImageTakedown, ImageWithdrawal
from retrieval.embedding.models import EmbeddingModel
from retrieval.flags.services import withdrawals_freeze
from retrieval.ranking.reading import read_ids
from retrieval.ranking.scan import Halves, Rows, Scores
from retrieval.ranking.selectors import image_products, image_vectors

#: The most images of a queue that an answer holds: labels for a quarter of an hour without a
#: connection at one image a second.
QUEUE: Final = 1000
#: Images whose vectors are in memory at a time.
BLOCK: Final = 8192
#: Pools whose moments a process remembers, of some kilobytes beside 8 bytes an image.
POOLS: Final = 8


@dataclass(frozen=True, slots=True)
class QueuedImage:
    """An image of a queue."""

    image_id: int
    rank: int
    """In the frozen list."""
    learned: bool
    """Whether it comes from the learned order; else from the frozen one."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The images that a person judges next."""

    revision: Revision
    images: list[QueuedImage]
    """The first QUEUE images that the person hasn't judged."""
    left_out: list[int]
    """The ranks of images that don't come up (`features.Feature.offered`)."""


@dataclass(frozen=True, eq=False, slots=True)
class _Pool:
    image_ids: Rows
    """(n,) the images of a list that weren't withdrawn, by rank."""
    ranks: Rows
    """(n,)"""
    moments: PoolMoments


@dataclass(frozen=True, slots=True)
class _Labels:
    """The labels of a list's images up to a judgment event."""

    last_event: int
    labels: dict[int, bool]
    """Whether it is relevant, by image."""


def orders_open_to(user: Any, query: Query) -> list[str]:
    """The orders that a person may choose for a query, the query's own first: both, except for
    annotators if settings.ANNOTATORS_CHOOSE_ORDER is off.
    """
    if not (settings.ANNOTATORS_CHOOSE_ORDER or at_least(user, Role.REVIEWER)):
        return [query.order]
    return sorted(Query.Order.values, key=lambda order: order != query.order)


def revision_queue(*, query: Query, user: Any) -> Queue:
    """The revision for the present judgments and its queue for a person: the unjudged images of
    the current list, without withdrawn ones.

    It learns from the person's own judgments, or from everyone's consensus if
    settings.LEARN_FROM_EVERYONE is set. The same judgments always give the same revision. Raises
    Conflict while the list isn't ready.
    """
    annotator = None if settings.LEARN_FROM_EVERYONE else user
    candidate_list, judged, moment = _current_labels(query, annotator)
    pool = _pool_at(candidate_list, candidate_list.size, moment)
    model, text = _model_and_text(candidate_list)
    feature = feature_of(candidate_list, pool.image_ids)
    revision = Revision.objects.filter(
        candidate_list=candidate_list,
        annotator=annotator,
        last_event=judged.last_event,
        size=candidate_list.size,
        feature=feature.key if feature else "",
    ).first()
    if revision is None:
        labels = _labels_in(pool, judged.labels)
        w, weight = _fit(model, text, pool, labels, feature)
    else:
        w, weight = np.array(revision.direction, np.float16), revision.weight
    image_ids, scores = _order(
        *image_products(model=model, vector=w, image_ids=pool.image_ids), pool, feature, weight
    )
    if revision is None:
        revision = _stored_revision(
            Revision(
                candidate_list=candidate_list,
                annotator=annotator,
                last_event=judged.last_event,
                size=candidate_list.size,
                direction=w.tolist(),
                feature=feature.key if feature else "",
                weight=weight,
                judged=len(labels),
                relevant=sum(labels.values()),
                checksum=_checksum(image_ids, scores),
                made_at=moment,
            )
        )
    own = (
        judged
        if annotator
        else _labels_at(candidate_list, candidate_list.size, user, judged.last_event)
    )
    learned = not np.array_equal(w, text) or weight != 0
    gone = ~feature.offered if feature else np.zeros(len(pool.ranks), np.bool_)
    left_out = set(pool.image_ids[gone].tolist())
    images = _queue(pool, image_ids, set(own.labels), left_out, learned=learned)
    return Queue(revision, images, pool.ranks[gone].tolist())


def revision_problem(revision: Revision) -> str | None:
    """What differs when a revision is computed again from its list, its judgments and its
    direction; empty if nothing does.

    The order is computed by the database's own scan and compared by checksum, hence bit for bit;
    the direction within the error of a refit (`ridge.agree`). None if one of its images was taken
    down since: then it can't be computed again.
    """
    candidate_list = revision.candidate_list
    model, text = _model_and_text(candidate_list)
    pool = _pool_at(candidate_list, revision.size, revision.made_at)
    if ImageTakedown.objects.filter(image__in=pool.image_ids.tolist()).exists():
        return None
    w = np.array(revision.direction, np.float16)
    feature = None
    if revision.feature:
        feature = feature_of(candidate_list, pool.image_ids, revision.feature)
        if feature is None:
            return "the numbers that it learned from beside the images are gone"
    products = image_products(model=model, vector=w, image_ids=pool.image_ids, scan=True)
    if _checksum(*_order(*products, pool, feature, revision.weight)) != revision.checksum:
        return "its order differs"
    judged = _labels_at(candidate_list, revision.size, revision.annotator, revision.last_event)
    labels = _labels_in(pool, judged.labels)
    if (len(labels), sum(labels.values())) != (revision.judged, revision.relevant):
        return "it learned from other judgments"
    again, weight = _fit(model, text, pool, labels, feature)
    if not agree(np.append(w, np.float16(revision.weight)), np.append(again, np.float16(weight))):
        return "its direction is not what its judgments give"
    return ""


def _current_labels(query: Query, annotator: Any) -> tuple[CandidateList, _Labels, datetime]:
    """The current list, the labels of its images, and the moment of both."""
    with transaction.atomic():
        # With the lock, all events up to the last are stored: a person's own events are stored one
        # after another, everyone's under the query's lock.
        if annotator is None:
            query = lock_query(query)
        else:
            lock_annotator(annotator)
        candidate_list = (
            CandidateList.objects.select_related("embedding_model", "query")
            .filter(pk=query.current_list_id or 0, frozen_at__isnull=False)
            .first()
        )
        if candidate_list is None or not candidate_list.size:
            raise Conflict("There is no candidate list to order yet.")
        events = JudgmentEvent.objects.filter(query=query)
        if annotator is not None:
            events = events.filter(annotator=annotator)
        last_event = events.aggregate(last=Max("pk"))["last"] or 0
        judged = _labels_at(candidate_list, candidate_list.size, annotator, last_event)
        withdrawals_freeze()
        return candidate_list, judged, timezone.now()


def _model_and_text(candidate_list: CandidateList) -> tuple[EmbeddingModel, Halves]:
    """The model and the text's vector (d,) of a ready list."""
    if candidate_list.embedding_model is None:
        raise ValueError("The list isn't ready yet.")
    return candidate_list.embedding_model, np.array(candidate_list.text_vector, np.float16)


_JUDGED: Final = f"""
SELECT last.image_id, last.annotator_id, person.role, last.relevance, last.made_at
  FROM (SELECT DISTINCT ON (e.annotator_id, e.image_id) e.*
          FROM {JudgmentEvent._meta.db_table} e
         WHERE e.query_id = %(query)s AND e.id <= %(last)s {{own}}
         ORDER BY e.annotator_id, e.image_id, e.id DESC) last
  JOIN {Candidate._meta.db_table} c
       ON c.list_id = %(list)s AND c.image_id = last.image_id AND c.rank <= %(size)s
  JOIN {JudgmentEvent._meta.get_field("annotator").related_model._meta.db_table} person
       ON person.id = last.annotator_id
 WHERE last.relevance <> ''
 ORDER BY last.image_id
"""


def _labels_at(
    candidate_list: CandidateList, size: int, annotator: Any, last_event: int
) -> _Labels:
    """The labels of a list's first `size` images after an event, by a person or by everyone."""
    statement = _JUDGED.format(own="" if annotator is None else "AND e.annotator_id = %(own)s")
    values = {
        "query": candidate_list.query_id,
        "list": candidate_list.pk,
        "size": size,
        "last": last_event,
        "own": annotator and annotator.pk,
    }
    votes = ((row[0], Vote(*row[1:])) for row in fetch_all(statement, values))
    labels = {image_id: agreed.relevant for image_id, agreed in consensus_by_key(votes)}
    return _Labels(last_event, labels)


def _pool_at(candidate_list: CandidateList, size: int, moment: datetime) -> _Pool:
    """The first `size` images of a list that weren't withdrawn at a moment."""
    condition, values = withdrawal_condition(moment)
    withdrawn = read_ids(
        f"SELECT c.rank::bigint FROM {ImageWithdrawal._meta.db_table} w"
        f" JOIN {Candidate._meta.db_table} c ON c.list_id = %s AND c.image_id = w.image_id"
        f" WHERE {condition} AND c.rank <= %s",
        [candidate_list.pk, *values, size],
    )
    return _pool(
        candidate_list.pk, candidate_list.checksum, size, tuple(sorted(withdrawn.tolist()))
    )


@lru_cache(POOLS)
def _pool(list_id: int, _checksum: str, size: int, withdrawn: tuple[int, ...]) -> _Pool:
    """The first `size` images of a list, without the withdrawn ranks. The checksum is part of the
    cache's key alone.
    """
    candidate_list = CandidateList.objects.select_related("embedding_model").get(pk=list_id)
    model, text = _model_and_text(candidate_list)
    image_ids = read_ids(
        f"SELECT image_id FROM {Candidate._meta.db_table}"
        " WHERE list_id = %s AND rank <= %s ORDER BY rank",
        [list_id, size],
    )
    ranks = np.delete(np.arange(1, size + 1), np.array(withdrawn, np.int64) - 1)
    image_ids = image_ids[ranks - 1]
    try:
        moments = pool_moments(_blocks(model, image_ids), text)
    except ValueError:
        # None of its images has an embedding any more, so there is nothing to learn.
        moments = PoolMoments(np.zeros(model.dimension), 0.0, 0.0)
    return _Pool(image_ids, ranks, moments)


def _blocks(model: EmbeddingModel, image_ids: Rows) -> Iterator[Halves]:
    ordered = np.sort(image_ids)
    for start in range(0, len(ordered), BLOCK):
        yield image_vectors(model=model, image_ids=ordered[start : start + BLOCK].tolist())[1]


def _labels_in(pool: _Pool, labels: dict[int, bool]) -> dict[int, bool]:
    """The labels of the pool's images."""
    judged = np.intersect1d(pool.image_ids, np.array(list(labels), np.int64)).tolist()
    return {image_id: labels[image_id] for image_id in judged}


def _fit(
    model: EmbeddingModel,
    text: Halves,
    pool: _Pool,
    labels: dict[int, bool],
    feature: Feature | None,
) -> tuple[Halves, float]:
    """The direction (d,) and the weight of the further number learned from these labels of the
    pool's images.
    """
    image_ids, vectors = image_vectors(model=model, image_ids=list(labels))
    relevant = np.array([labels[image_id] for image_id in image_ids.tolist()], np.bool_)
    numbers = np.empty((len(image_ids), 0))
    if feature is not None and feature.numbers.any():
        numbers = _numbers_of(image_ids, pool, feature)[:, None]
    return direction_and_weight(pool.moments, text, vectors, relevant, numbers)


def _order(
    image_ids: Rows, products: Scores, pool: _Pool, feature: Feature | None, weight: float
) -> tuple[Rows, Scores]:
    """Images (n,) and their scores (n,) in the learned order, from the products of their vectors
    with the direction.
    """
    scores = products
    if feature is not None:
        scores = products + weight * _numbers_of(image_ids, pool, feature)
    order = learned_indices(scores, image_ids)
    return image_ids[order], scores[order]


def _numbers_of(image_ids: Rows, pool: _Pool, feature: Feature) -> Scores:
    """The further numbers of these images (n,) of the pool."""
    by_id = np.argsort(pool.image_ids)
    places = by_id[np.searchsorted(pool.image_ids, image_ids, sorter=by_id)]
    return feature.numbers[places].astype(np.float64)


def _checksum(image_ids: Rows, scores: Scores) -> str:
    """The checksum of images (n,) and their scores (n,) in order."""
    return ranking_checksum(np.rec.fromarrays([image_ids, scores], dtype=RANKING))


def _stored_revision(revision: Revision) -> Revision:
    """Number and store the revision; returns the stored one if another process was faster."""
    with transaction.atomic():
        transaction_lock(lock_key("revisions", revision.candidate_list_id))
        siblings = Revision.objects.filter(
            candidate_list=revision.candidate_list, annotator=revision.annotator
        )
        same = siblings.filter(
            last_event=revision.last_event, size=revision.size, feature=revision.feature
        ).first()
        if same is not None:
            return same
        revision.number = (siblings.aggregate(last=Max("number"))["last"] or 0) + 1
        revision.save()
        return revision


def _queue(
    pool: _Pool, ordered: Rows, judged: set[int], left_out: set[int], *, learned: bool
) -> list[QueuedImage]:
    ranks = dict(zip(pool.image_ids.tolist(), pool.ranks.tolist(), strict=True))
    judged = judged & ranks.keys()
    offered = (image_id for image_id in ordered.tolist() if image_id not in left_out)
    frozen = (image_id for image_id in ranks if image_id not in left_out)
    queue = interleave(offered, frozen, judged=judged)
    return [
        QueuedImage(image_id, ranks[image_id], learned and not frozen_turn(len(judged) + position))
        for position, image_id in enumerate(islice(queue, QUEUE), start=1)
    ]
