"""The job that builds an approximate index (HNSW) of a model's embeddings, for free-text search.

Candidate lists never use it. Storing an embedding takes longer while the index exists.
"""

from __future__ import annotations

import time
from typing import Any, Final

from django.conf import settings
from django.db import transaction

from core.errors import Refused
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance, job_create
from core.locks import lock_key, transaction_lock
from retrieval.embedding.models import EmbeddingCount, EmbeddingModel
from retrieval.search.index_build import (
    ITEM,
    IndexPlan,
    build_progress,
    index_build_start,
    index_drop,
    index_fits,
    is_building,
)
from retrieval.search.vector_indexes import IndexKind, vector_index

KIND: Final = "index_embeddings"
BINARY_ABOVE: Final = 1_000_000
"""The number of embeddings above which an index of signs is recommended: building a graph of the
vectors themselves takes more memory than many machines have."""
M: Final = 16
EF_CONSTRUCTION: Final = 64
LEAST_MEMORY: Final = 64
MOST_MEMORY: Final = 2048
ATTEMPTS: Final = 3
POLL_SECONDS: Final = 0.5
POLLS: Final = 3


class IndexRefused(Refused):
    """The index can't be made; the message says why."""


def recommended_kind(embedded: int) -> IndexKind:
    """Return the recommended kind of index for a number of embeddings."""
    return "binary" if embedded > BINARY_ABOVE else "halfvec"


def graph_memory(embedded: int, dimension: int, kind: IndexKind, m: int = M) -> int:
    """Estimate how many MiB the graph takes while it is built in memory.

    For each embedding its value, 2 m neighbors of 16 bytes in the lowest layer (Malkov and
    Yashunin 2018, section 4.1, M_max0 = 2 M) and pgvector's own data for it.
    """
    value = 2 * dimension if kind == "halfvec" else dimension // 8
    return embedded * (value + 32 * m + 256) // 2**20 + 1


def index_job_create(
    *,
    model_name: str = "",
    kind: IndexKind | None = None,
    m: int = M,
    ef_construction: int = EF_CONSTRUCTION,
    memory: int | None = None,
    created_by: Any = None,
) -> Job:
    """Create a job that indexes a model's embeddings (default: settings.EMBEDDING_MODEL).

    `kind` is by default `recommended_kind`, `memory` (MiB for the graph) by default `graph_memory`,
    up to 2 GiB. An index that has these parameters is left as it is, any other is replaced. An
    unfinished job with the same parameters is returned. Raises IndexRefused for a model without
    embeddings, for parameters that pgvector doesn't accept, and while another job works on the
    index.
    """
    model = _model(model_name)
    embedded = _embedded(model)
    if not embedded:
        raise IndexRefused(f"{model.name} has no embeddings yet.")
    if not (2 <= m <= 100 and 4 <= ef_construction <= 1000 and ef_construction >= 2 * m):
        raise IndexRefused(
            f"m={m}, ef_construction={ef_construction}: pgvector accepts an m from 2 to 100 and an "
            "ef_construction from 4 to 1,000 that is at least twice m."
        )
    if memory is not None and memory < 1:
        raise IndexRefused(f"{memory} MiB of memory is too little: give at least 1.")
    chosen = kind or recommended_kind(embedded)
    needed = graph_memory(embedded, model.dimension, chosen, m)
    params = {
        "model": model.name,
        "kind": chosen,
        "m": m,
        "ef_construction": ef_construction,
        "memory": memory or min(MOST_MEMORY, max(LEAST_MEMORY, needed)),
    }
    return _job(params, f"Index the embeddings of {model.name}", created_by)


def index_drop_job_create(*, model_name: str = "", created_by: Any = None) -> Job:
    """Create a job that drops a model's index; raises IndexRefused if it has none, or while another
    job works on it."""
    model = _model(model_name)
    if vector_index(model) is None:
        raise IndexRefused(f"The embeddings of {model.name} have no index.")
    return _job(
        {"model": model.name, "drop": True},
        f"Drop the index of the embeddings of {model.name}",
        created_by,
    )


def _model(name: str) -> EmbeddingModel:
    name = name or settings.EMBEDDING_MODEL
    model = EmbeddingModel.objects.filter(name=name).first()
    if model is None:
        raise IndexRefused(f"{name} has no embeddings yet.")
    return model


def _embedded(model: EmbeddingModel) -> int:
    count = EmbeddingCount.objects.filter(model=model).first()
    return count.embedded if count is not None else 0


@transaction.atomic
def _job(params: dict[str, Any], title: str, created_by: Any) -> Job:
    transaction_lock(lock_key("job_kind"))
    unfinished = Job.objects.filter(
        kind=KIND, params__model=params["model"], state__in=Job.UNFINISHED
    ).first()
    if unfinished is None:
        return job_create(kind=KIND, params=params, title=title, created_by=created_by)
    if unfinished.params != params:
        raise IndexRefused(f"Job {unfinished.pk} is working on the index of {params['model']}.")
    return unfinished


def index_step(job: Job, deadline: float) -> bool:
    """Report the build's progress, or start it if it isn't running; True when it is done.

    The build continues between the slices. An index left unfinished by a crash is built again.
    """
    model = EmbeddingModel.objects.filter(name=job.params["model"]).first()
    if model is None:
        raise JobFailed(f"The model {job.params['model']} no longer exists.")
    if job.params.get("drop"):
        return _dropped(job, model)
    plan = IndexPlan(
        kind=job.params["kind"],
        m=job.params["m"],
        ef_construction=job.params["ef_construction"],
        memory=job.params["memory"],
    )
    if job.total is None:
        job_advance(job=job, total=_embedded(model), cursor={"attempts": 0})
    for _ in range(POLLS):
        if is_building(model):
            _report(job, model)
        elif index_fits(model, plan):
            return _finish(job, model)
        else:
            _begin(job, model, plan)
        if time.monotonic() + POLL_SECONDS >= deadline:
            break
        time.sleep(POLL_SECONDS)
    return False


def _dropped(job: Job, model: EmbeddingModel) -> bool:
    if is_building(model):
        time.sleep(POLL_SECONDS)
        return False
    index_drop(model=model)
    job_advance(job=job, total=0)
    return True


def _begin(job: Job, model: EmbeddingModel, plan: IndexPlan) -> None:
    attempts = job.cursor["attempts"]
    if attempts >= ATTEMPTS:
        job_advance(job=job, cursor={"attempts": 0})
        last = job.item_errors.filter(item=ITEM).first()
        why = last.message if last else "the database stopped in the middle each time"
        raise JobFailed(f"The index could not be built: {why}")
    job_advance(job=job, cursor={"attempts": attempts + 1})
    index_build_start(model=model, plan=plan, job=job, alone=attempts > 0)


def _report(job: Job, model: EmbeddingModel) -> None:
    now = build_progress(model)
    # The last steps, in which the index is compared with the table, report no progress.
    done = int((job.total or 0) * min(now.fraction, 0.99))
    job_advance(job=job, done=max(0, done - job.done), result={"phase": now.phase})


def _finish(job: Job, model: EmbeddingModel) -> bool:
    index = vector_index(model)
    job.item_errors.filter(item=ITEM).delete()
    job_advance(
        job=job,
        done=max(0, (job.total or 0) - job.done),
        result={"index": index.name, "bytes": index.size_bytes} if index else {},
    )
    return True
