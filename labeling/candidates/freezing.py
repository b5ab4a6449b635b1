"""Ranking candidate lists, many in one pass over the corpus, and freezing them one by one."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import IntegrityError, transaction

from core.errors import QueryGone
from core.jobs.kinds import JobCanceled, JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance
from core.locks import lock_key, try_session_lock
from labeling.candidates.models import CandidateList
from labeling.candidates.selectors import list_checksum
from labeling.candidates.services import candidates_store, lock_query
from retrieval.embedding.embedding_models import (
    embedding_model_freeze,
    embedding_model_get_or_create,
)
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.text_vectors import text_vector, text_vectors
from retrieval.flags.services import withdrawals_freeze
from retrieval.ranking.batches import vectors_at_once
from retrieval.ranking.selectors import (
    CorpusCounts,
    corpus_counts,
    rank_images,
    rank_images_many,
)

logger = logging.getLogger(__name__)

#: The most lists that one pass over the corpus ranks: INQUIRE's 250 queries are one pass.
LISTS_AT_ONCE: Final = 256
#: The most candidates that a pass may hold in memory; about 120 bytes each.
CANDIDATES_AT_ONCE: Final = 1_500_000
#: Seconds between checks of whether another worker's pass is over.
PAUSE: Final = 0.1


class ListRefused(JobFailed):
    """The list would do harm; the message says why, for people. It fails the job."""


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The order of one list, and the counts of the corpus at that moment."""

    requested: CandidateList
    model: EmbeddingModel
    vector: list[float]
    frozen_at: datetime
    counts: CorpusCounts
    depth: int
    rows: Sequence[tuple[int, float]]
    """(image id, score), best first."""


def list_freeze(
    *, list_id: int, job: Job | None = None, deadline: float = math.inf
) -> CandidateList | None:
    """Rank the corpus for a requested list and store the order, whole or not at all.

    Where the model's matrix ranks, the lists of the same model that wait beside it and have no
    species filter are ranked in the same pass over the corpus; each is stored in a transaction of
    its own. While another worker makes such a pass, this waits for it, to `deadline` (of
    `time.monotonic`) at most, and returns the list as it is then, which may not be ready.

    Returns None if the list was superseded. Doing it again changes nothing. The freezing moment is
    taken under the locks of the model and of withdrawals, so the list holds exactly the embeddings
    stored until then, of the images not withdrawn then. Raises ListRefused if nothing is embedded
    while an older list holds candidates, and what loading the model raises; the failures of other
    lists are those of their own jobs.
    """
    while True:
        found = CandidateList.objects.filter(pk=list_id).select_related("query").first()
        if found is None:
            return None
        if found.ready:
            if job is not None:
                _job_done(job, found)
            return found
        model = embedding_model_get_or_create(name=found.model_name)
        at_once = _lists_at_once(found, model, job)
        if at_once == 1:
            return _store(_ranked_alone(found, model), job)
        with try_session_lock(lock_key("ranking", model.pk)) as held:
            if held:
                return _freeze_together(found, model, job, at_once)
        if time.monotonic() >= deadline:
            return found
        time.sleep(PAUSE)


def _freeze_together(
    requested: CandidateList, model: EmbeddingModel, job: Job | None, at_once: int
) -> CandidateList | None:
    """Freeze a list and those that wait beside it; the caller holds the lock of the ranking."""
    failure: Exception | None = None
    frozen = None
    for ranked in _ranked_together(requested, model, at_once):
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
    requested: CandidateList, model: EmbeddingModel, at_once: int
) -> list[_Ranked]:
    lists = [requested, *_waiting_beside(requested, at_once - 1)]
    try:
        vectors = text_vectors(model, [one.text for one in lists])
    except ValueError:
        # The text without a vector may be that of another list.
        lists, vectors = [requested], [text_vector(model, requested.text)]
    frozen_at = _freezing_moment(model)
    counts = corpus_counts(model=model, created_before=frozen_at)
    rankings = rank_images_many(
        model=model,
        text_vectors=vectors,
        limit=max(one.depth for one in lists),
        created_before=frozen_at,
    )
    return [
        _Ranked(one, model, vector, frozen_at, counts, one.depth, rows[: one.depth])
        for one, vector, rows in zip(lists, vectors, rankings, strict=True)
    ]


def _ranked_alone(requested: CandidateList, model: EmbeddingModel) -> _Ranked:
    vector = text_vector(model, requested.text)
    frozen_at = _freezing_moment(model)
    species_ids = requested.species_ids
    counts = corpus_counts(model=model, species_ids=species_ids, created_before=frozen_at)
    # A species filter is small enough to be labeled whole, which is what exhausts it.
    depth = counts.embedded if species_ids else requested.depth
    rows = rank_images(
        model=model,
        text_vector=vector,
        species_ids=species_ids,
        limit=depth,
        created_before=frozen_at,
    )
    return _Ranked(requested, model, vector, frozen_at, counts, depth, rows)


def _freezing_moment(model: EmbeddingModel) -> datetime:
    with transaction.atomic():
        withdrawals_freeze()
        return embedding_model_freeze(model=model)


def _waiting_beside(requested: CandidateList, most: int) -> list[CandidateList]:
    """The lists of the model whose jobs have yet to make them, the oldest first; no deeper than
    `requested`, so that a pass holds no more candidates than planned.
    """
    return list(
        CandidateList.objects.filter(
            frozen_at=None,
            model_name=requested.model_name,
            species_ids=[],
            depth__lte=requested.depth,
            job__state__in=Job.UNFINISHED,
        )
        .exclude(pk=requested.pk)
        .select_related("query")
        .order_by("pk")[:most]
    )


def _lists_at_once(requested: CandidateList, model: EmbeddingModel, job: Job | None) -> int:
    """How many lists a pass for this one ranks: one with a species filter, and where more gain
    nothing. Fewer after each attempt that was cut short, in case its size killed the worker.
    """
    if requested.species_ids:
        return 1
    within_memory = CANDIDATES_AT_ONCE // max(requested.depth, 1)
    attempts_before = max(job.fruitless_turns - 1, 0) if job is not None else 0
    most = min(LISTS_AT_ONCE, within_memory) >> (2 * attempts_before)
    return vectors_at_once(model, most=max(most, 1))


def _store(ranked: _Ranked, job: Job | None) -> CandidateList | None:
    """Store a list's order; None if it was superseded.

    With `job`, the list's own, raises JobCanceled where that was canceled; without, leaves a list
    as it is whose job has ended meanwhile.
    """
    rows = ranked.rows
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
        if not rows and current is not None and current.size:
            raise ListRefused(
                f"No image of the filter is embedded under {ranked.model.name}, so the present "
                "list stays."
            )
        candidates_store(frozen, rows, first_rank=1)
        frozen.embedding_model = ranked.model
        frozen.text_vector = ranked.vector
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


def _job_unfinished(frozen: CandidateList) -> bool:
    """Whether the job of a list has neither ended nor been canceled."""
    jobs = Job.objects.filter(state__in=Job.UNFINISHED)
    return frozen.job_id is not None and jobs.filter(pk=frozen.job_id).exists()


def _job_done(job: Job, frozen: CandidateList) -> None:
    """Bring a job up to the ready list, whoever made it."""
    size = frozen.size
    job_advance(job=job, done=size - job.done, total=size, result={"list": frozen.pk})
