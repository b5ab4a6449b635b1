"""Rankings by the shards of a model's matrix, each held by a process that may run elsewhere.

Who ranks sends each shard one message in a Celery group and merges the answers. All read the
database in one exported snapshot, and what the shards hold together is compared with what that
snapshot counts, so the ranking is bit for bit that of one matrix. Images whose shard doesn't answer
in time, or that are in none, are ranked by a scan of the database.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from celery import group, signature
from celery.exceptions import TimeoutError as NotInTime
from celery.result import AsyncResult, allow_join_result
from django.db import connection
from django.db.models import F
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from core.ids import LARGEST_ID
from core.locks import lock_owners
from core.sql import repeatable_read
from extras.sharding.models import RankingShard
from extras.sharding.settings import shard_settings
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.corpus_filter import CorpusFilter
from retrieval.ranking.rankers import Ranker, Scan
from retrieval.ranking.reading import Span, id_range_condition, partition_name
from retrieval.ranking.scan import Halves, Rows, ScoredImage, Scores, sort_by_score

logger = logging.getLogger(__name__)

RANK: Final = "sharding.rank_shard"
CHECK: Final = "sharding.check_shard"
_PLACES_AT_ONCE: Final = 1 << 20
"""Places of all queries in one answer, which is a text in Redis."""
_QUERIES_AT_ONCE: Final = 256
# Between two looks for a shard that has gone to another process.
_PATIENCE: Final = 0.5


class ShardsUnusable(Exception):
    """The shards can't rank, so the database must; the message says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a shard has for each query, and how many embeddings it looked at."""

    embedded: int
    fingerprint: int
    lists: list[tuple[Rows, Scores]]

    def message(self) -> dict[str, Any]:
        """The answer as the result of a task."""
        ids, scores = map(np.concatenate, zip(*self.lists, strict=True))
        return {
            "embedded": self.embedded,
            "fingerprint": self.fingerprint,
            "lengths": [len(ids) for ids, _ in self.lists],
            "ids": text_of(ids),
            "scores": text_of(scores),
        }

    @classmethod
    def read(cls, message: dict[str, Any]) -> Answer:
        """The answer that a task's result holds."""
        ends = np.cumsum(message["lengths"])[:-1]
        ids = np.split(array_of(message["ids"], np.int64), ends)
        scores = np.split(array_of(message["scores"], np.float64), ends)
        lists = list(zip(ids, scores, strict=True))
        return cls(message["embedded"], message["fingerprint"], lists)


def text_of(values: np.ndarray) -> str:
    """An array's bytes for a message."""
    return base64.b64encode(values.tobytes()).decode()


def array_of(text: str, kind: type) -> np.ndarray:
    """The array (n,) of a message."""
    return np.frombuffer(base64.b64decode(text), kind)


def places_of(lists: Sequence[Sequence[ScoredImage]]) -> list[tuple[Rows, Scores]]:
    """Rankings as the image ids (n,) and the scores (n,) of each."""
    return [
        (np.array([one[0] for one in found], np.int64), np.array([one[1] for one in found]))
        for found in lists
    ]


def queue_of(shard: RankingShard) -> str:
    """The queue of a shard's messages."""
    return f"rank.{shard.model.identity}.{shard.first_image}-{shard.last_image}"


def span_of(shard: RankingShard) -> Span:
    """The range of a shard's images."""
    return Span(shard.first_image, shard.last_image)


def shards_as_cut() -> Any:
    """The shards (a query set) of the size that is set now."""
    return RankingShard.objects.filter(
        last_image=F("first_image") + shard_settings.RANKING_SHARD_IMAGES - 1
    ).select_related("model")


def shards_ready(model: EmbeddingModel) -> bool:
    """Whether each of the model's shards is held by a process."""
    shards = list(shards_as_cut().filter(model=model))
    owners = lock_owners("shard")
    return bool(shards) and all(shard.worker and shard.pk in owners for shard in shards)


def rank_by_shards(
    model: EmbeddingModel,
    queries: Halves,
    limit: int | None,
    corpus_filter: CorpusFilter,
    behind: tuple[float, int] | None,
    scan: Scan,
) -> list[list[ScoredImage]] | None:
    """Return the rankings by the model's shards; None if they can't rank.

    `scan` ranks a query (d,) within a filter by the database.
    """
    # What was never packed yet is not waited for.
    shards = list(shards_as_cut().filter(model=model).exclude(worker=""))
    lists: list[list[ScoredImage]] = []
    try:
        if limit is None or limit > _PLACES_AT_ONCE:
            raise ShardsUnusable("so many places are not sent")
        if not set(lock_owners("shard")) & {shard.pk for shard in shards}:
            raise ShardsUnusable("no process holds one")
        size = max(1, min(_QUERIES_AT_ONCE, _PLACES_AT_ONCE // limit))
        with _moment(model) as (moment, embedded, fingerprint):
            for start in range(0, len(queries), size):
                some = queries[start : start + size]
                question = {
                    "model": model.pk,
                    "moment": moment,
                    "queries": text_of(some),
                    "limit": limit,
                    "species_ids": [*(corpus_filter.species_ids or ())],
                    "created_before": corpus_filter.created_before,
                    "corpus_at": corpus_filter.corpus_at,
                    "behind": behind,
                }
                answers = _answers(shards, question)
                gaps = _gaps([span_of(shard) for shard in shards if shard.pk in answers])
                found = [*answers.values(), *_scanned(model, some, corpus_filter, gaps, scan)]
                held = sum(one.embedded for one in found), sum(one.fingerprint for one in found)
                if held != (embedded, fingerprint):
                    _send(shards, CHECK, {})
                    raise ShardsUnusable("they hold other embeddings than the database")
                lists += merged(found, limit)
    # Celery raises a RuntimeError where it has tried in vain to connect.
    except (ShardsUnusable, BrokerError, RedisError, RuntimeError) as error:
        logger.warning("The database ranks, not the shards of %s: %s", model, error)
        return None
    return lists


def merged(answers: Sequence[Answer], limit: int) -> list[list[ScoredImage]]:
    """The first `limit` places of all answers, for each query."""
    lists = []
    for own in zip(*(one.lists for one in answers), strict=True):
        ids, scores = map(np.concatenate, zip(*own, strict=True))
        lists.append(sort_by_score(ids, scores, limit=limit))
    return lists


@contextmanager
def _moment(model: EmbeddingModel) -> Iterator[tuple[str, int, int]]:
    """A snapshot that others can read in until the block ends, the number of the model's embeddings
    in it, and the sum of their marks.

    Raises ShardsUnusable in a transaction that can't give one.
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
        yield moment, int(embedded), int(fingerprint)


def _answers(shards: Sequence[RankingShard], question: dict[str, Any]) -> dict[int, Answer]:
    """The answers of the shards that give one in time, by the shard's key."""
    deadline = time.monotonic() + shard_settings.RANKING_SHARD_SECONDS
    answers: dict[int, Answer] = {}
    with allow_join_result():
        owners = lock_owners("shard")
        waiting = _send(shards, RANK, question)
        while waiting and (left := deadline - time.monotonic()) > 0:
            pk, result = next(iter(waiting.items()))
            try:
                found = result.get(timeout=min(_PATIENCE, left), propagate=False)
            except NotInTime:
                now = lock_owners("shard")
                # Who was killed has taken its message along; one that nobody took is waiting.
                moved = {one for one in owners if now.get(one, owners[one]) != owners[one]}
                again = [shard for shard in shards if shard.pk in moved & set(waiting)]
                waiting |= _send(again, RANK, question)
                waiting[pk] = waiting.pop(pk)
                owners |= now
                continue
            del waiting[pk]
            result.forget()
            if isinstance(found, dict):
                answers[pk] = Answer.read(found)
            else:
                logger.warning("Shard %s doesn't rank: %s", pk, found)
    for pk in waiting:
        logger.warning("Shard %s doesn't answer in time", pk)
    return answers


def _send(
    shards: Sequence[RankingShard], task: str, question: dict[str, Any]
) -> dict[int, AsyncResult]:
    """Send each shard's holder a message; the results by the shard's key."""
    messages = [
        signature(
            task,
            kwargs=question | {"images": span_of(shard), "shard": shard.pk},
            queue=queue_of(shard),
            expires=shard_settings.RANKING_SHARD_SECONDS,
            ignore_result=task != RANK,
        )
        for shard in shards
    ]
    sent = group(messages).apply_async().results if messages else []
    return dict(zip((shard.pk for shard in shards), sent, strict=True))


def _gaps(covered: Sequence[Span]) -> list[Span]:
    """The ranges of image ids between these."""
    gaps, first = [], -LARGEST_ID - 1
    for span in sorted(covered):
        if span.first > first:
            gaps.append(Span(first, span.first - 1))
        first = span.last + 1
    if first <= LARGEST_ID:
        gaps.append(Span(first, LARGEST_ID))
    return gaps


def _scanned(
    model: EmbeddingModel,
    queries: Halves,
    corpus_filter: CorpusFilter,
    gaps: Sequence[Span],
    scan: Scan,
) -> Iterator[Answer]:
    """What the database has in these ranges."""
    for gap in gaps:
        embedded, fingerprint = embeddings_in(model, gap)
        if embedded:
            lists = [scan(query, replace(corpus_filter, images=gap)) for query in queries]
            yield Answer(embedded, fingerprint, places_of(lists))


def embeddings_in(model: EmbeddingModel, images: Span) -> tuple[int, int]:
    """How many embeddings of these images the database has, and the sum of their marks."""
    inside, span = id_range_condition(images)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*),"
            " coalesce(sum(retrieval_embedding_mark(e.image_id, e.created_at)), 0)::text"
            f" FROM {partition_name(model)} e WHERE true{inside}",
            span,
        )
        embedded, fingerprint = cursor.fetchone()
    return int(embedded), int(fingerprint)


SHARDS: Final = Ranker(is_ready=shards_ready, rank=rank_by_shards)
