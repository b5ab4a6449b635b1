"""Jobs that pack matrices; a worker of the machine that needs one does them."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.dispatch import receiver
from django.utils import timezone

from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance, job_create
from core.locks import lock_key, transaction_lock
from core.parent_death import ending
from retrieval.embedding.models import EmbeddingCount, EmbeddingModel
from retrieval.embedding.store import embeddings_stored
from retrieval.ranking.building import pack
from retrieval.ranking.current import lag_of
from retrieval.ranking.files import MatrixUnusable, open_matrix
from retrieval.ranking.rankers import RANKERS

logger = logging.getLogger(__name__)

KIND: Final = "pack_embeddings"
SMALLEST: Final = 10_000
"""With fewer embeddings a scan of the database is as fast as checking a matrix."""
LAG: Final = 1000
_LAG_PER_CENT: Final = 2
_LAG_MOST: Final = 16_000
_REST = timedelta(hours=1)
PAUSE: Final = 1.0
PATIENCE: Final = 600
BETWEEN_REQUESTS: Final = 60.0

_requested: dict[tuple[int, Path], float] = {}
_requesting = threading.Lock()


def should_repack(lag: int, rows: int) -> bool:
    """Whether a matrix with so many rows lacks so many embeddings that it should be packed."""
    return lag >= min(max(LAG, rows * _LAG_PER_CENT // 100), _LAG_MOST)


def matrix_request(*, model: EmbeddingModel) -> None:
    """Request a job that packs the model's matrix, after the present transaction is committed; at
    most once a minute per process. Never fails a ranking.
    """
    key, now = (model.pk, Path(settings.VAR_DIR)), time.monotonic()
    with _requesting:
        if now - _requested.get(key, -BETWEEN_REQUESTS) < BETWEEN_REQUESTS:
            return
        _requested[key] = now
    transaction.on_commit(lambda: _request_quietly(model), robust=True)


def _request_quietly(model: EmbeddingModel) -> None:
    try:
        pack_request(model=model)
    except Exception:
        logger.exception("A matrix of %s couldn't be requested", model)


def pack_request(
    *, model: EmbeddingModel, rebuild: bool = False, created_by: Any = None
) -> Job | None:
    """Create a job in which a worker of this machine updates the model's matrix.

    Returns the job, which may be an earlier unfinished one; None if there is nothing to do:
    matrices are switched off or something else ranks, the model has few embeddings or no newer
    ones, or the last job failed or was canceled within the hour.
    """
    if not settings.MATRIX or RANKERS or not (rebuild or _has_work(model)):
        return None
    params = {"model": model.pk, "place": state_folder_id(), "rebuild": rebuild}
    with transaction.atomic():
        transaction_lock(lock_key("job_kind"))
        jobs = Job.objects.filter(kind=KIND, params__model=model.pk, params__place=params["place"])
        unfinished = jobs.filter(state__in=Job.UNFINISHED).first()
        if unfinished is not None:
            return unfinished
        last = jobs.first()
        if last is not None and last.state != Job.State.DONE and _ended_recently(last):
            return None
        return job_create(
            kind=KIND, params=params, created_by=created_by, title=f"Pack the matrix of {model}"
        )


def matrix_rebuild(*, model: EmbeddingModel, created_by: Any) -> Job | None:
    """Have the model's matrix packed anew, without the vectors of images that were removed.

    Returns the job; None where it has no matrix here.
    """
    try:
        open_matrix(model)
    except MatrixUnusable:
        return None
    params = {"model": model.pk, "place": state_folder_id(), "rebuild": True}
    return job_create(
        kind=KIND, params=params, created_by=created_by, title=f"Pack the matrix of {model} anew"
    )


@receiver(embeddings_stored, dispatch_uid="pack_embeddings")
def _pack_stored(*, model: EmbeddingModel, created_by: Any, **_: Any) -> None:
    pack_request(model=model, created_by=created_by)


def _ended_recently(job: Job) -> bool:
    return job.finished_at is not None and job.finished_at > timezone.now() - _REST


def _has_work(model: EmbeddingModel) -> bool:
    try:
        return lag_of(model)[0] > 0
    except MatrixUnusable as error:
        count = EmbeddingCount.objects.filter(model=model).first()
        return not error.missing or (count is not None and count.embedded >= SMALLEST)


def pack_step(job: Job, deadline: float) -> bool:
    """Pack the matrix in one slice; True when it is up to date, or nearly."""
    if job.params["place"] != state_folder_id():
        return _wait(job, "No worker runs where the matrix was asked for.")
    model = EmbeddingModel.objects.filter(pk=job.params["model"]).first()
    if model is None:
        raise JobFailed("The model was deleted.")
    # Of earlier slices; rows of one that was killed count with the next one.
    before = job.cursor.get("rows", 0)

    def go_on(rows: int, total: int) -> bool:
        job_advance(job=job, done=max(0, before + rows - job.done), total=before + total)
        return not ending()

    # Rebuild only once: later embeddings are read by further slices.
    rebuild = job.params["rebuild"] and "rows" not in job.cursor
    rows = pack(model, rebuild=rebuild, go_on=go_on)
    if rows is None:
        return _wait(job, "Another process packs this matrix and doesn't come to an end.")
    job_advance(job=job, total=before + rows, cursor={"rows": before + rows})
    try:
        lag, packed = lag_of(model)
    except MatrixUnusable as error:
        raise JobFailed(f"The matrix was packed, but can't be used: {error}.") from error
    # Many embeddings may be new since it was packed.
    return not should_repack(lag, packed)


def _wait(job: Job, text: str) -> bool:
    """End the slice after a pause; fails the job after many of these in a row."""
    waited = job.cursor.get("waited", 0) + 1
    if waited > PATIENCE:
        raise JobFailed(text)
    job_advance(job=job, cursor={**job.cursor, "waited": waited})
    time.sleep(PAUSE)
    return False


def state_folder_id() -> str:
    """Return a unique name of this state folder, which requester and worker must share."""
    path = Path(settings.VAR_DIR) / "place"
    try:
        return path.read_text()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".place-{uuid.uuid4().hex}")
        temporary.write_text(uuid.uuid4().hex)
        try:
            # If two processes do this at once, the first name stays.
            path.hardlink_to(temporary)
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
        return path.read_text()
