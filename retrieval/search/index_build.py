"""Building an HNSW index in the database, in a thread of its own.

`CREATE INDEX CONCURRENTLY` takes minutes to hours and runs outside a transaction, so it has a
connection and a thread of its own. The connection holds the model's lock: while the lock is free no
build is running. The database finishes a build whose process was killed.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Final

from django.db import Error, connection

from core.jobs.models import Job
from core.jobs.services import job_item_error
from core.locks import is_locked, lock_key, session_lock
from retrieval.embedding.models import EmbeddingModel
from retrieval.search.vector_indexes import (
    IndexKind,
    index_expression,
    index_name,
    partition_name,
    vector_index,
)

ITEM: Final = "index"
WATCH_SECONDS: Final = 1.0
BEGIN_SECONDS: Final = 10.0
_OPERATORS: Final[dict[IndexKind, str]] = {
    "halfvec": "halfvec_ip_ops",
    "binary": "bit_hamming_ops",
}
_PROGRESS = """
SELECT p.phase, p.blocks_done, p.blocks_total FROM pg_stat_progress_create_index p
WHERE p.datname = current_database() AND p.relid = to_regclass(%s)
"""


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """The parameters of an index to build, and the memory (MiB) for its graph."""

    kind: IndexKind
    m: int
    ef_construction: int
    memory: int


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """A build's progress: PostgreSQL's name of the phase, and the fraction (0..1) that is built."""

    phase: str
    fraction: float


def is_building(model: EmbeddingModel) -> bool:
    """Whether a connection is building the model's index."""
    return is_locked(_lock(model))


def build_progress(model: EmbeddingModel) -> BuildProgress:
    """The progress of the build, from pg_stat_progress_create_index."""
    with connection.cursor() as cursor:
        cursor.execute(_PROGRESS, [partition_name(model)])
        row = cursor.fetchone()
    if row is None:
        return BuildProgress("waiting", 0.0)
    phase, done, total = row
    if phase.startswith("building index"):
        return BuildProgress(phase, done / total if total else 0.0)
    return BuildProgress(phase, 0.0 if "before build" in phase or phase == "initializing" else 1.0)


def index_fits(model: EmbeddingModel, plan: IndexPlan) -> bool:
    """Whether the model has an index with the plan's parameters, ready for use."""
    index = vector_index(model)
    return (
        index is not None
        and index.ready
        and (index.kind, index.m, index.ef_construction)
        == (plan.kind, plan.m, plan.ef_construction)
    )


def index_drop(*, model: EmbeddingModel) -> None:
    """Drop the model's index, finished or not, without blocking reads or writes.

    Call it outside a transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index_name(model)}")


def index_build_start(*, model: EmbeddingModel, plan: IndexPlan, job: Job, alone: bool) -> None:
    """Start building the index in a thread; returns when its connection has the model's lock.

    An index of the same name is dropped first. `alone` builds without PostgreSQL's parallel
    workers, which need shared memory as large as the graph. A failure becomes the job's item error
    ITEM; canceling the job ends the build.
    """
    begun = threading.Event()
    threading.Thread(
        target=_build,
        args=(model, plan, job, begun),
        kwargs={"workers": 0 if alone else 2},
        name=f"index-{model.pk}",
        daemon=True,
    ).start()
    begun.wait(BEGIN_SECONDS)


def _lock(model: EmbeddingModel) -> int:
    return lock_key("vector_index", model.pk)


def _build(
    model: EmbeddingModel, plan: IndexPlan, job: Job, begun: threading.Event, *, workers: int
) -> None:
    try:
        with session_lock(_lock(model)):
            begun.set()
            if not index_fits(model, plan):
                _create(model, plan, job, workers)
    except Error as error:
        _note(job, str(error).strip())
    finally:
        begun.set()
        connection.close()


def _create(model: EmbeddingModel, plan: IndexPlan, job: Job, workers: int) -> None:
    index_drop(model=model)
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(job, connection.connection, ended), daemon=True)
    watch.start()
    try:
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"SET maintenance_work_mem = '{int(plan.memory)}MB'")
                cursor.execute(f"SET max_parallel_maintenance_workers = {int(workers)}")
                expression = index_expression(plan.kind, model.dimension)
                cursor.execute(
                    f"CREATE INDEX CONCURRENTLY {index_name(model)} ON {partition_name(model)}"
                    f" USING hnsw ({expression} {_OPERATORS[plan.kind]})"
                    f" WITH (m = {int(plan.m)}, ef_construction = {int(plan.ef_construction)})"
                )
        finally:
            # Before anything is dropped: a canceled job would end that too.
            ended.set()
            watch.join()
    except Error as error:
        _note(job, str(error).strip())
        # An unfinished index would slow down every insert and be of no use.
        index_drop(model=model)


def _watch(job: Job, building: Any, ended: threading.Event) -> None:
    """Cancel the build when its job is canceled."""
    try:
        while not ended.wait(WATCH_SECONDS):
            if Job.objects.filter(pk=job.pk, state=Job.State.CANCELED).exists():
                building.cancel()
    except Error:
        # The database does not answer here; the build has its own connection and continues.
        return
    finally:
        connection.close()


def _note(job: Job, message: str) -> None:
    try:
        if Job.objects.filter(pk=job.pk, state__in=Job.UNFINISHED).exists():
            job_item_error(job=job, item=ITEM, message=message)
    except Error:
        # The database does not answer; the job will find that nothing was built.
        return
