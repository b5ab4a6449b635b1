"""Rankings by shards: a Celery worker for each has the matrix of a range of image ids.

The process that ranks sends a message to each shard's queue and merges the answers. All read the
database in one exported snapshot, and what they looked at together is compared with what that
snapshot counts, so the ranking is bit for bit that of one matrix. Images whose shard doesn't answer
in time, or that are in none, are ranked by a scan of the database.
"""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np
from celery import shared_task
from celery.exceptions import TimeoutError as NotInTime
from celery.result import allow_join_result
from django.db import connection, transaction
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from annotator.web.health import queued_messages
from core.ids import LARGEST_ID
from core.outside import BROKER
from core.parent_death import ending
from core.sql import repeatable_read
from extras.sharding.settings import shard_settings
from retrieval.corpus.models import ImageTakedown
from retrieval.embedding.counts import embedded_models
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.building import MatrixRefused, pack
from retrieval.ranking.corpus_filter import CorpusFilter
from retrieval.ranking.current import current_matrix
from retrieval.ranking.files import MatrixUnusable, open_matrix
from retrieval.ranking.matrices import should_repack
from retrieval.ranking.rankers import Ranker, Scan
from retrieval.ranking.reading import Span, id_range_condition, partition_name
from retrieval.ranking.scan import Halves, ImpreciseProduct, ScoredImage, rows_of
from retrieval.ranking.selectors import QUERIES_AT_ONCE, rank_by_matrix

logger = logging.getLogger(__name__)

REST_SECONDS: Final = 30.0
"""How long a process leaves a shard alone that didn't answer it."""
_PLACES_AT_ONCE: Final = 1 << 20
"""Places of all queries in one answer, which is a text in Redis."""

Answer = tuple[int, int, list[list[ScoredImage]]]
"""Of some images: how many embeddings, the sum of their marks, and the places for each query."""

_resting: dict[tuple[int, int], float] = {}


class ShardsUnusable(Exception):
    """The shards can't rank, so the database must; the message says why."""


def span_of(shard: int) -> Span:
    """The range of a shard's images; the last has all that are behind the others."""
    size = shard_settings.RANKING_SHARD_IMAGES
    is_last = shard + 1 == shard_settings.RANKING_SHARDS
    return Span(shard * size, LARGEST_ID if is_last else (shard + 1) * size - 1)


@shared_task(ignore_result=False, acks_late=False, throws=(MatrixUnusable, ImpreciseProduct))
def rank_shard(
    *, shard: int, model: int, moment: str, queries: bytes, limit: int, behind: Any, **narrowed: Any
) -> Answer:
    """Rank a shard's images in the snapshot `moment` for queries, halves (q, d) as bytes, by the
    fields of a filter. Raises MatrixUnusable or ImpreciseProduct.
    """
    known, repack = EmbeddingModel.objects.get(pk=model), True
    halves = np.frombuffer(queries, np.float16).reshape(-1, known.dimension)
    corpus_filter = replace(CorpusFilter(**narrowed), images=span_of(shard))
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute("SET TRANSACTION SNAPSHOT %s", [moment])
            lists, current = rank_by_matrix(known, halves, limit, corpus_filter, behind)
        repack = should_repack(current.lag, current.mapped.manifest.rows)
    finally:
        if repack:
            _send(pack_shard, shard, {"model": model, "compare": False})
    return current.state.embedded, current.state.fingerprint, lists


@shared_task(throws=(MatrixRefused,))
def pack_shard(*, shard: int, model: int, compare: bool) -> None:
    """Update a shard's matrix. It is read anew where it holds images that were taken down or, if
    asked to compare, other embeddings than the database.
    """
    known, images = EmbeddingModel.objects.get(pk=model), span_of(shard)
    read = partial(pack, known, images=images, go_on=lambda rows, total: not ending())
    read(rebuild=_must_rebuild(known, images, compare=compare))
    # An image may have been taken down after its vector was read.
    if _must_rebuild(known, images):
        read(rebuild=True)


def _must_rebuild(model: EmbeddingModel, images: Span, *, compare: bool = False) -> bool:
    try:
        taken_down = ImageTakedown.objects.filter(image__pk__range=images).values_list("pk")
        if len(rows_of(open_matrix(model, images).parts, np.array(taken_down, np.int64))):
            return True
        if not compare:
            return False
        with repeatable_read():
            state = current_matrix(model, corpus_filter=CorpusFilter(images=images)).state
            return (state.embedded, state.fingerprint) != _embeddings_in(model, images)
    except MatrixUnusable:
        return False  # It is packed anew where that is needed.


def packing_request(
    *, model: EmbeddingModel | None = None, compare: bool = False, **_: Any
) -> None:
    """Have all shards of this model, or of each, take in what is new or was taken down, after the
    present transaction.
    """
    for one in embedded_models() if model is None else [model]:
        for shard in range(shard_settings.RANKING_SHARDS):
            send = partial(_send, pack_shard, shard, {"model": one.pk, "compare": compare})
            transaction.on_commit(partial(BROKER.tell, send), robust=True)


def _send(task: Any, shard: int, told: dict[str, Any], **options: Any) -> Any:
    """Put a message into the queue that a shard's worker alone takes from."""
    return task.apply_async(kwargs=told | {"shard": shard}, queue=f"ranking.{shard}", **options)


def _rank_by_shards(
    model: EmbeddingModel,
    queries: Halves,
    limit: int | None,
    corpus_filter: CorpusFilter,
    behind: tuple[float, int] | None,
    scan: Scan,
) -> list[list[ScoredImage]] | None:
    lists: list[list[ScoredImage]] = []
    told = {"model": model.pk, "limit": limit, "behind": behind} | asdict(corpus_filter)
    try:
        if limit is None or limit > _PLACES_AT_ONCE:
            raise ShardsUnusable("so many places are not sent")
        # Each message to a broker that doesn't answer would hold this thread.
        if queued_messages() is None:
            raise ShardsUnusable("the broker can't be reached")
        size = max(1, min(QUERIES_AT_ONCE, _PLACES_AT_ONCE // limit))
        with _moment(model) as (moment, counted):
            for some in (queries[n : n + size] for n in range(0, len(queries), size)):
                answers = _answers(model, told | {"moment": moment, "queries": some.tobytes()})
                for shard in {*range(shard_settings.RANKING_SHARDS)} - {*answers}:
                    part = replace(corpus_filter, images=span_of(shard))
                    places = [scan(query, part) for query in some]
                    answers[shard] = *_embeddings_in(model, span_of(shard)), places
                embedded, fingerprints, ranked = zip(*answers.values(), strict=True)
                if (sum(embedded), sum(fingerprints)) != counted:
                    logger.warning("Shards of %s hold other embeddings than the database", model)
                    packing_request(model=model, compare=True)
                    _rest(model, answers)
                    return None
                for own in zip(*ranked, strict=True):
                    merged = heapq.merge(*own, key=lambda place: (-place[1], place[0]))
                    lists.append([(image, score) for image, score in islice(merged, limit)])
    # Celery raises a RuntimeError where it has tried in vain to connect.
    except (ShardsUnusable, BrokerError, RedisError, RuntimeError) as error:
        logger.warning("The database ranks, not the shards of %s: %s", model, error)
        return None
    return lists


@contextmanager
def _moment(model: EmbeddingModel) -> Iterator[tuple[str, tuple[int, int]]]:
    """A snapshot that others can read in until the block ends, with the number of the model's
    embeddings in it and the sum of their marks. Raises ShardsUnusable.
    """
    if any(connection.savepoint_ids):
        raise ShardsUnusable("a savepoint has no snapshot for others")
    with nullcontext() if connection.in_atomic_block else repeatable_read():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('transaction_isolation'), pg_export_snapshot(),"
                " coalesce(sum(embedded), 0), coalesce(sum(fingerprint), 0)::text"
                " FROM retrieval_embeddingcount WHERE model_id = %s",
                [model.pk],
            )
            isolation, moment, embedded, fingerprint = cursor.fetchone()
        if isolation != "repeatable read":
            raise ShardsUnusable("the transaction has no single snapshot")
        yield moment, (int(embedded), int(fingerprint))


def _answers(model: EmbeddingModel, told: dict[str, Any]) -> dict[int, Answer]:
    """The answers of the shards that give one in time."""
    seconds, answers = shard_settings.RANKING_SHARD_SECONDS, dict[int, Answer]()
    deadline = time.monotonic() + seconds
    sent = {shard: _send(rank_shard, shard, told, expires=seconds) for shard in _asked(model)}
    with allow_join_result():
        for shard, result in sent.items():
            try:
                # Celery takes 0 for no limit.
                left = max(0.01, deadline - time.monotonic())
                answer = result.get(timeout=left, propagate=False)
            except NotInTime as error:
                answer = error
            result.forget()
            if isinstance(answer, Exception):
                logger.warning("The database ranks for shard %s of %s: %s", shard, model, answer)
                _rest(model, [shard])
            else:
                answers[shard] = answer
    return answers


def _embeddings_in(model: EmbeddingModel, images: Span) -> tuple[int, int]:
    """How many embeddings of these images the database has, and the sum of their marks."""
    inside, span = id_range_condition(images)
    marks = "coalesce(sum(retrieval_embedding_mark(e.image_id, e.created_at)), 0)::text"
    table = partition_name(model)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*), {marks} FROM {table} e WHERE true{inside}", span)
        embedded, fingerprint = cursor.fetchone()
    return int(embedded), int(fingerprint)


def _asked(model: EmbeddingModel) -> list[int]:
    """The shards, without those that rest."""
    shards, now = range(shard_settings.RANKING_SHARDS), time.monotonic()
    return [shard for shard in shards if _resting.get((model.pk, shard), now) <= now]


def _rest(model: EmbeddingModel, shards: Iterable[int]) -> None:
    until = time.monotonic() + REST_SECONDS
    _resting.update({(model.pk, shard): until for shard in shards})


def _is_ready(model: EmbeddingModel) -> bool:
    return len(_asked(model)) == int(shard_settings.RANKING_SHARDS)


SHARDS: Final = Ranker(is_ready=_is_ready, rank=_rank_by_shards)
