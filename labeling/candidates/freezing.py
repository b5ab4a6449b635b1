"""Ranking candidate lists, many in one pass over the corpus, and freezing them one by one."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Max

from core.errors import QueryGone
from core.jobs.kinds import JobCanceled, JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance
from core.locks import lock_key, try_session_lock
from labeling.candidates.fusion import fuse, list_size, put_first
from labeling.candidates.models import CandidateList, PoolRanking
from labeling.candidates.pools import first_images
from labeling.candidates.selectors import has_own_filter, list_checksum
from labeling.candidates.services import candidates_store, lock_query
from retrieval.embedding.embedding_models import (
    embedding_model_freeze,
    embedding_model_get_or_create,
)
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.text_vectors import text_vector, text_vectors
from retrieval.flags.services import withdrawals_freeze
from retrieval.ranking.batches import vectors_at_once
from retrieval.ranking.scan import ScoredImage
from retrieval.ranking.selectors import (
    QUERIES_AT_ONCE,
    CorpusCounts,
    corpus_counts,
    rank_images,
    rank_images_many,
)

logger = logging.getLogger(__name__)

#: The most candidates that a pass may hold in memory; about 120 bytes each.
CANDIDATES_AT_ONCE: Final = 1_500_000
#: Seconds between checks of whether another worker's pass is over.
PAUSE: Final = 0.1


class ListRefused(JobFailed):
    """The list would do harm; the message says why, for people. It fails the job."""


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A list's ranking by each of its models, and the counts of the corpus at that moment."""

    requested: CandidateList
    models: Sequence[EmbeddingModel]
    vectors: Sequence[list[float]]
    """The text's vector under each model."""
    frozen_at: datetime
    counts: CorpusCounts
    depth: int
    rankings: Sequence[Sequence[ScoredImage]]
    """Each model's, best first."""
    order: Sequence[ScoredImage]
    """The rankings fused; with one model, its ranking."""


def list_freeze(
    *, list_id: int, job: Job | None = None, deadline: float = math.inf
) -> CandidateList | None:
    """Rank the corpus for a requested list and store the order, whole or not at all.

    Where packed matrices rank the images, the same pass over the corpus also ranks other waiting
    lists of the same models without a species filter; each is stored in a transaction of its own.
    While another worker makes such a pass, this waits for it, until `deadline` (of
    `time.monotonic`) at the latest, and returns the list as it is then, which may not be ready.

    Returns None if the list was superseded. Doing it again changes nothing. The locks of the models
    and of withdrawals are held when the freezing moment is read, so the list holds exactly the
    embeddings stored until then, of the images not withdrawn then. Raises ListRefused if nothing is
    embedded while an older list holds candidates, and what loading the model raises; other lists'
    failures are left to their own jobs.
    """
    while True:
        candidate_list = CandidateList.objects.filter(pk=list_id).select_related("query").first()
        if candidate_list is None:
            return None
        if candidate_list.ready:
            if job is not None:
                _job_done(job, candidate_list)
            return candidate_list
        models = [embedding_model_get_or_create(name=name) for name in candidate_list.model_names]
        at_once = _lists_at_once(candidate_list, models, job)
        if at_once == 1:
            return _store(_ranked_alone(candidate_list, models), job)
        with try_session_lock(lock_key("ranking", models[0].pk)) as acquired:
            if acquired:
                return _freeze_together(candidate_list, models, job, at_once)
        if time.monotonic() >= deadline:
            return candidate_list
        time.sleep(PAUSE)


def _freeze_together(
    requested: CandidateList, models: Sequence[EmbeddingModel], job: Job | None, at_once: int
) -> CandidateList | None:
    """Freeze a list and other waiting ones; the caller holds the lock of the ranking."""
    failure: Exception | None = None
    frozen = None
    for ranked in _ranked_together(requested, models, at_once):
        own = ranked.requested.pk == requested.pk
        try:
            stored = _store(ranked, job if own else None)
            frozen = stored if own else frozen
        except (ListRefused, QueryGone, IntegrityError, JobCanceled) as error:
            # Another list's own job fails likewise and says so.
            failure = error if own else failure
    if failure is not None:
        raise failure
    return frozen


def _ranked_together(
    requested: CandidateList, models: Sequence[EmbeddingModel], at_once: int
) -> Iterator[_Ranked]:
    lists = [requested, *_waiting_beside(requested, at_once - 1)]
    try:
        texts = [candidate_list.text for candidate_list in lists]
        vectors = [text_vectors(model, texts) for model in models]
    except ValueError:
        # The text that has no vector may be another list's.
        lists, vectors = [requested], [[text_vector(model, requested.text)] for model in models]
    frozen_at = _freezing_moment(models)
    counts = _counts(models, [], frozen_at)
    rankings = [
        rank_images_many(
            model=model,
            text_vectors=model_vectors,
            limit=max(candidate_list.depth for candidate_list in lists),
            created_before=frozen_at,
        )
        for model, model_vectors in zip(models, vectors, strict=True)
    ]
    for index, candidate_list in enumerate(lists):
        depth = candidate_list.depth
        own_rankings = [model_rankings[index][:depth] for model_rankings in rankings]
        yield _Ranked(
            candidate_list,
            models,
            [model_vectors[index] for model_vectors in vectors],
            frozen_at,
            counts,
            depth,
            own_rankings,
            _order(own_rankings),
        )


def _ranked_alone(requested: CandidateList, models: Sequence[EmbeddingModel]) -> _Ranked:
    vectors = [text_vector(model, requested.text) for model in models]
    frozen_at = _freezing_moment(models)
    species_ids = requested.species_ids
    counts = _counts(models, species_ids, frozen_at)
    # A species filter is small enough to be labeled whole, which is what exhausts it.
    whole = has_own_filter(requested, requested.query)
    depth = counts.embedded if whole else requested.depth
    rankings = [
        rank_images(
            model=model,
            text_vector=vector,
            species_ids=species_ids,
            limit=depth,
            created_before=frozen_at,
        )
        for model, vector in zip(models, vectors, strict=True)
    ]
    order = _order(rankings)
    if whole:
        depth = max(depth, len(order))
    return _Ranked(requested, models, vectors, frozen_at, counts, depth, rankings, order)


def _order(rankings: Sequence[Sequence[ScoredImage]]) -> Sequence[ScoredImage]:
    return rankings[0] if len(rankings) == 1 else fuse(_ids(rankings))


def _ids(rankings: Sequence[Sequence[ScoredImage]]) -> list[list[int]]:
    return [[image_id for image_id, _ in ranking] for ranking in rankings]


def _counts(
    models: Sequence[EmbeddingModel], species_ids: Sequence[int], moment: datetime
) -> CorpusCounts:
    """The counts of the model that has embedded most images."""
    counts = [
        corpus_counts(model=model, species_ids=species_ids, created_before=moment)
        for model in models
    ]
    return max(counts, key=lambda corpus: corpus.embedded)


def _freezing_moment(models: Sequence[EmbeddingModel]) -> datetime:
    """A moment that separates what is embedded by any of the models from what comes later."""
    with transaction.atomic():
        withdrawals_freeze()
        # Always in the same order, against deadlocks; the last moment holds for all models.
        for model in sorted(models, key=lambda model: model.pk):
            moment = embedding_model_freeze(model=model)
        return moment


def _waiting_beside(requested: CandidateList, most: int) -> list[CandidateList]:
    """The waiting lists of the same models, the oldest first; none is deeper than `requested`, so a
    pass holds no more candidates than planned.
    """
    return list(
        CandidateList.objects.filter(
            frozen_at=None,
            model_name=requested.model_name,
            pool_models=requested.pool_models,
            species_ids=[],
            depth__lte=requested.depth,
            job__state__in=Job.UNFINISHED,
        )
        .exclude(pk=requested.pk)
        .select_related("query")
        .order_by("pk")[:most]
    )


def _lists_at_once(
    requested: CandidateList, models: Sequence[EmbeddingModel], job: Job | None
) -> int:
    """How many lists one pass ranks: only this one if it has a species filter or if ranking several
    gains nothing. Fewer after each interrupted attempt, in case its size killed the worker.
    """
    if requested.species_ids:
        return 1
    within_memory = CANDIDATES_AT_ONCE // max(requested.depth * len(models), 1)
    attempts_before = max(job.attempts_without_progress - 1, 0) if job is not None else 0
    most = min(QUERIES_AT_ONCE, within_memory) >> (2 * attempts_before)
    return min(vectors_at_once(model, most=max(most, 1)) for model in models)


def _store(ranked: _Ranked, job: Job | None) -> CandidateList | None:
    """Store a list's order; None if it was superseded.

    `job` is the list's own: JobCanceled if it was canceled. Without `job`, a list whose job has
    ended meanwhile is left as it is.
    """
    with transaction.atomic():
        query = lock_query(ranked.requested.query)
        frozen = CandidateList.objects.select_for_update().filter(pk=ranked.requested.pk).first()
        if frozen is None:
            return None
        if frozen.ready:
            if job is not None:
                _job_done(job, frozen)
            return frozen
        if job is None and not _job_unfinished(frozen):
            return frozen
        current = query.current_list
        if not ranked.order and current is not None and current.size:
            names = " or ".join(frozen.model_names)
            raise ListRefused(
                f"No image of the filter is embedded under {names}, so the present list stays."
            )
        rows = _rows(frozen, ranked)
        candidates_store(frozen, rows, first_rank=1)
        frozen.embedding_model = ranked.models[0]
        frozen.text_vector = ranked.vectors[0]
        frozen.frozen_at = ranked.frozen_at
        frozen.depth = ranked.depth
        frozen.size = len(rows)
        frozen.total = max(ranked.counts.embedded, len(rows))
        frozen.unembedded = ranked.counts.unembedded
        frozen.checksum = list_checksum(rows)
        frozen.save()
        if current is None or current.pk < frozen.pk:
            query.current_list = frozen
            query.save(update_fields=["current_list", "updated_at"])
        if job is not None:
            _job_done(job, frozen)
    return frozen


def _rows(frozen: CandidateList, ranked: _Ranked) -> Sequence[ScoredImage]:
    """The rows of a list; stores the rankings of a pooled list. The caller locks its query."""
    if not frozen.pool_models:
        return ranked.order
    PoolRanking.objects.bulk_create(
        PoolRanking(
            list=frozen,
            place=position,
            embedding_model=model,
            text_vector=vector,
            image_ids=[image_id for image_id, _ in ranking],
            scores=[score for _, score in ranking],
            checksum=list_checksum(ranking),
        )
        for position, (model, vector, ranking) in enumerate(
            zip(ranked.models, ranked.vectors, ranked.rankings, strict=True), start=1
        )
    )
    if frozen.added_models:
        events = frozen.query.judgment_events
        frozen.last_event = events.aggregate(last=Max("pk"))["last"] or 0
    rankings = _ids(ranked.rankings)
    order = put_first(ranked.order, first_images(frozen, rankings))
    return order[: list_size(order, rankings, ranked.depth)]


def _job_unfinished(frozen: CandidateList) -> bool:
    """Whether the job of a list has neither ended nor been canceled."""
    jobs = Job.objects.filter(state__in=Job.UNFINISHED)
    return frozen.job_id is not None and jobs.filter(pk=frozen.job_id).exists()


def _job_done(job: Job, frozen: CandidateList) -> None:
    """Set a job's progress and result to those of the ready list, whichever worker made it."""
    size = frozen.size
    job_advance(job=job, done=size - job.done, total=size, result={"list": frozen.pk})
