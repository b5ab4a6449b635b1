"""Requesting, extending and renewing candidate lists; `freezing` ranks them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from core.errors import Conflict, QueryGone
from core.jobs.models import Job
from core.jobs.services import job_cancel, job_create
from core.locks import lock_key, transaction_lock
from core.sql import copy
from labeling.candidates.fusion import GUARANTEED
from labeling.candidates.models import Candidate, CandidateList
from labeling.candidates.pools import pool_order
from labeling.candidates.selectors import (
    filter_species_ids,
    is_about,
    list_checksum,
    list_fits,
    models_in_use,
)
from labeling.queries.models import Query
from retrieval.ranking.selectors import rank_images

JOB_KIND = "rank_candidates"
ROWS_AT_A_TIME = 5000


def lock_query(query: Query) -> Query:
    """The query as it is now, locked until the transaction ends.

    Changes of state and of the list take this lock first, and judgments hold it shared
    (`lock_query_shared`), so that a judgment is either before a completion or refused by it, and
    always ranked in the list that is current. Raises QueryGone.
    """
    transaction_lock(lock_key("query", query.pk))
    return _query_read(Query.objects.select_for_update(no_key=True, of=("self",)), query)


def lock_query_shared(query: Query) -> Query:
    """The query as it is now; its state and list can't change until the transaction ends.

    Any number of transactions may hold the lock shared. It is an advisory lock because row locks
    have no queue: the judgments of many annotators could keep a reviewer's decision waiting
    forever. A transaction that holds it shared must not ask for `lock_query`. Raises QueryGone.
    """
    transaction_lock(lock_key("query", query.pk), shared=True)
    return _query_read(Query.objects.all(), query)


def _query_read(queries: QuerySet[Query], query: Query) -> Query:
    # The text's vector is needed only to make the list, and slow to read.
    queries = queries.select_related("current_list", "benchmark").defer("current_list__text_vector")
    try:
        return queries.get(pk=query.pk)
    except Query.DoesNotExist:
        raise QueryGone("The query was deleted meanwhile.") from None


def list_request(*, query: Query, by: Any) -> CandidateList:
    """Request a list of the query as it is now; the caller holds the query's lock.

    A list that is still being made is superseded. Sets `query.current_list`, unless that is a
    finished list that still fits: people label it until the new one is ready.
    """
    for old in query.lists.filter(frozen_at=None).select_related("job"):
        if old.job is not None:
            job_cancel(job=old.job)
        old.delete()
    query.refresh_from_db(fields=["current_list"])
    names = models_in_use(query)
    pooled = len(names) > 1
    created = CandidateList.objects.create(
        query=query,
        model_name=names[0],
        pool_models=names if pooled else [],
        added_models=_added(query, names) if pooled else [],
        text=query.text,
        species_ids=filter_species_ids(query),
        depth=max(settings.CANDIDATE_DEPTH, GUARANTEED if pooled else 0),
    )
    created.job = job_create(
        kind=JOB_KIND,
        params={"list": created.pk, "query": query.pk},
        created_by=by,
        title=f"Rank the candidates of query {query.query_id}",
    )
    created.save(update_fields=["job"])
    if not list_fits(query):
        query.current_list = created
        query.save(update_fields=["current_list", "updated_at"])
    return created


def _added(query: Query, names: Sequence[str]) -> list[str]:
    """The models that the query's last list didn't have; if there are none, the models that the
    last list had added, whose images may still be unjudged.
    """
    last = query.lists.filter(frozen_at__isnull=False).last()
    if last is None or not is_about(last, query):
        return []
    added = [name for name in names if name not in last.model_names]
    return added or [name for name in names if name in last.added_models]


def list_ensure(*, query: Query, by: Any) -> bool:
    """Request a list if the query's current one doesn't fit it (any more); returns whether one was
    requested. The caller holds the query's lock.
    """
    current = query.current_list
    if current is not None and list_fits(query):
        if current.ready:
            return False
        if current.job is not None and current.job.state in Job.UNFINISHED:
            return False
    list_request(query=query, by=by)
    return True


@transaction.atomic
def list_refresh(*, query: Query, by: Any) -> CandidateList:
    """Make a new list that includes what was imported and embedded since; keeps the judgments.

    People label a list that still fits the query until the new one is ready. If a refresh is under
    way already, returns its list. Raises Conflict unless the query is open or submitted.
    """
    query = lock_query(query)
    if query.state not in (Query.State.OPEN, Query.State.SUBMITTED):
        raise Conflict(
            f"The query is {query.get_state_display().lower()}; "
            "only an open or submitted one gets a new list."
        )
    pending = query.lists.filter(frozen_at=None).select_related("job").last()
    if (
        pending is not None
        and list_fits(query, pending)
        and pending.job is not None
        and pending.job.state in Job.UNFINISHED
    ):
        return pending
    return list_request(query=query, by=by)


def lists_refresh_stale(*, by: Any) -> int:
    """Make new lists for the open queries whose list is missing or failed, or was made by other
    models or for another text or filter.

    Returns how many were requested. Run it after a change of the model in use or of POOL_MODELS.
    """
    requested = 0
    for pk in Query.objects.filter(state=Query.State.OPEN).values_list("pk", flat=True):
        with transaction.atomic():
            query = lock_query(Query(pk=pk))
            requested += query.state == Query.State.OPEN and list_ensure(query=query, by=by)
    return requested


def list_extend(*, candidate_list: CandidateList, by_count: int) -> int:
    """Append the next candidates of the same frozen order; returns how many.

    They continue behind the last (score, image id), among the embeddings and images of the freezing
    moment, so the longer list is what a greater depth would have given; it includes images
    withdrawn since, which pages leave out. A pooled list continues within its models' rankings. If
    two extensions run at once, one counts and the other returns 0. Raises Conflict if the list
    isn't ready or holds all images.
    """
    frozen = CandidateList.objects.select_related("embedding_model", "query").get(
        pk=candidate_list.pk
    )
    model, vector = frozen.embedding_model, frozen.text_vector
    if model is None or vector is None:
        raise Conflict("The candidate list isn't ready yet.")
    if frozen.size >= frozen.total:
        raise Conflict("The candidate list already holds every embedded image of its filter.")
    if frozen.pool_models:
        rows = pool_order(frozen)[frozen.size : frozen.size + by_count]
        if not rows:
            raise Conflict(
                "The candidate list already holds the first images of each of its models. A new "
                "list with a greater CANDIDATE_DEPTH has more."
            )
    else:
        last = frozen.candidates.filter(rank=frozen.size).first()
        rows = rank_images(
            model=model,
            text_vector=vector,
            species_ids=frozen.species_ids,
            limit=by_count,
            after=(last.score, last.image_id) if last else None,
            created_before=frozen.frozen_at,
        )
    with transaction.atomic():
        lock_query(frozen.query)
        extended = CandidateList.objects.select_for_update().get(pk=frozen.pk)
        if extended.size != frozen.size:
            return 0
        candidates_store(extended, rows, first_rank=frozen.size + 1)
        extended.size += len(rows)
        extended.depth = max(extended.depth, extended.size)
        if len(rows) < by_count and not frozen.pool_models:
            # Some images that were counted at the freezing are no longer in the corpus.
            extended.total = extended.size
        extended.total = max(extended.total, extended.size)
        order = extended.candidates.order_by("rank").values_list("image_id", "score")
        extended.checksum = list_checksum(order.iterator(ROWS_AT_A_TIME))
        extended.save(update_fields=["size", "depth", "total", "checksum"])
    return len(rows)


def candidates_store(
    candidate_list: CandidateList, rows: Sequence[tuple[int, float]], *, first_rank: int
) -> None:
    """Append rows (image id, score) from `first_rank` on by COPY; the caller locks the list."""
    lines = "".join(
        f"{candidate_list.pk}\t{rank}\t{image_id}\t{score!r}\n"
        for rank, (image_id, score) in enumerate(rows, start=first_rank)
    )
    copy(
        f"COPY {Candidate._meta.db_table} (list_id, rank, image_id, score) FROM STDIN",
        io.StringIO(lines),
    )
