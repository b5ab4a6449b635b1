"""Long work, slice by slice.

The Job row says what is to be done; a message only says "look at job N, turn T". Each slice begins
a new turn, so a message from an earlier turn is stale and dropped: however often the sweep repeats
itself, one chain of messages goes round for a job. Between two slices other jobs have theirs.
"""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Collection
from typing import Any

from celery import current_app
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F, Func, JSONField, Value
from django.db.models.functions import Coalesce, Now

from core.errors import Refused
from core.jobs.kinds import JobCanceled, handler_for
from core.jobs.models import Job, JobItemError
from core.locks import lock_key, transaction_lock, try_session_lock
from core.log_lines import lines_of_job
from core.outages import DISK_FULL, free_bytes, outage_of
from core.outside import BROKER

logger = logging.getLogger(__name__)

TASK = "core.run_job"
SLICE_SECONDS = 5.0
# Times a slice, if no other job waits; short enough for a worker that must stop.
LONG_SLICE = 2
# Shown on a job that waits: the last free space is reserved for judgments.
DISK_LOW = "The server's disk is nearly full. The job goes on when there is room."

# A slice that kills its worker, or that the database refuses each time, is given up.
MOST_ATTEMPTS_WITHOUT_PROGRESS = 10


class Slice(enum.Enum):
    """The outcome of working on a job."""

    FINISHED = "finished"
    MORE = "more"
    FAILED = "failed"
    LATER = "later"  # the database failed or the disk is full; the sweep will retry
    BUSY = "busy"  # another worker has it
    STALE = "stale"  # an old message, or the job has ended
    CANCELED = "canceled"


class _Merged(Func):
    """The members of two JSON objects, in doubt those of the second."""

    template = "(%(expressions)s)"
    arg_joiner = " || "
    output_field = JSONField()


def job_create(
    *, kind: str, params: dict[str, Any], created_by: Any = None, title: str = ""
) -> Job:
    """Store a job and, once that is committed, send a message to the workers.

    Raises UnknownJobKind if no handler is registered for the kind.
    """
    handler_for(kind)
    job = Job.objects.create(kind=kind, params=params, created_by=created_by, title=title)
    _send_on_commit(job)
    return job


@transaction.atomic
def job_get_or_create(
    *, kind: str, params: dict[str, Any], created_by: Any = None, title: str = ""
) -> Job:
    """Return the unfinished job of this kind that has these params, or create it as `job_create`.

    Of two requests at once, one waits and gets the other's job.
    """
    transaction_lock(lock_key("job_kind"))
    same = Job.objects.filter(kind=kind, params__contains=params, state__in=Job.UNFINISHED)
    return same.first() or job_create(kind=kind, params=params, created_by=created_by, title=title)


def job_advance(
    *,
    job: Job,
    done: int = 0,
    failed: int = 0,
    total: int | None = None,
    cursor: dict[str, Any] | None = None,
    result: dict[str, Any] | None = None,
) -> None:
    """Record progress, in the same transaction as the work that it speaks of.

    `done` and `failed` are added to what was there; the others replace it. Raises JobCanceled if
    the job was canceled meanwhile: let it pass, so that the transaction is undone.
    """
    changes: dict[str, Any] = {
        "done": F("done") + done,
        "failed": F("failed") + failed,
        "updated_at": Now(),
    }
    if done or failed:
        changes["attempts_without_progress"] = 0
    for name, value in (("total", total), ("cursor", cursor), ("result", result)):
        if value is not None:
            changes[name] = value
            setattr(job, name, value)
    if not Job.objects.filter(pk=job.pk, state=Job.State.RUNNING).update(**changes):
        raise JobCanceled
    job.done += done
    job.failed += failed


def job_note(*, job: Job, members: dict[str, Any]) -> None:
    """Add members to the job's result, or replace them, in the database alone."""
    result = _Merged(F("result"), Value(members, JSONField()))
    Job.objects.filter(pk=job.pk).update(result=result)


def job_item_error(*, job: Job, item: str, message: str, image_id: int | None = None) -> None:
    """Name an item that could not be done; a repeat replaces the message."""
    JobItemError.objects.update_or_create(
        job=job, item=item[:500], defaults={"message": message, "image_id": image_id}
    )


def slice_prolonged(*, deadline: float, began: float, beside: Collection[int]) -> float:
    """Return a later end of the slice that began at `began`, where no job but those of `beside`
    (their keys) is unfinished, or the same.

    It is never more than LONG_SLICE times as long as a slice is otherwise.
    """
    latest = began + LONG_SLICE * SLICE_SECONDS
    if deadline >= latest:
        return deadline
    waiting = Job.objects.filter(state__in=Job.UNFINISHED).exclude(pk__in=beside)
    return deadline if waiting.exists() else latest


def job_cancel(*, job: Job) -> bool:
    """Stop a job before its next piece of work; tells whether it was still unfinished."""
    return bool(
        Job.objects.filter(pk=job.pk, state__in=Job.UNFINISHED).update(
            state=Job.State.CANCELED, finished_at=Now(), updated_at=Now()
        )
    )


@transaction.atomic
def job_retry(*, job: Job) -> bool:
    """Queue a failed or canceled job again, from where it stopped; False if it was neither."""
    queued = Job.objects.filter(pk=job.pk, state__in=[Job.State.FAILED, Job.State.CANCELED]).update(
        state=Job.State.QUEUED,
        error="",
        attempts_without_progress=0,
        finished_at=None,
        updated_at=Now(),
    )
    if queued:
        job.refresh_from_db()
        _send_on_commit(job)
    return bool(queued)


def jobs_sweep() -> int:
    """Send a message for each unfinished job again; returns their number.

    Called when a worker starts and every few seconds, so that no lost message loses work.
    """
    unfinished = list(
        Job.objects.filter(state__in=Job.UNFINISHED).order_by("pk").values_list("pk", "turn")
    )
    for job_id, turn in unfinished:
        _send(job_id, turn)
    return len(unfinished)


def job_slice_run(*, job_id: int, turn: int | None = None) -> Slice:
    """Do one slice of a job, unless another worker has it or `turn` is past.

    Errors of the database and a full disk leave the job to the sweep, as does a disk with less than
    DISK_MIN_FREE_BYTES; any other error fails the job with its text.
    """
    with lines_of_job(job_id), try_session_lock(lock_key("job", job_id)) as held:
        if not held:
            return Slice.BUSY
        if free_bytes() < settings.DISK_MIN_FREE_BYTES:
            Job.objects.filter(pk=job_id, state__in=Job.UNFINISHED).update(error=DISK_LOW)
            return Slice.LATER
        job = _turn_begin(job_id, turn)
        if job is None:
            return Slice.STALE
        outcome = _turn_work(job)
    # Sent after the lock was released, which the next worker needs.
    if outcome is Slice.MORE:
        _send(job.pk, job.turn)
    return outcome


def _turn_begin(job_id: int, turn: int | None) -> Job | None:
    jobs = Job.objects.filter(pk=job_id, state__in=Job.UNFINISHED)
    if turn is not None:
        jobs = jobs.filter(turn=turn)
    begun = jobs.update(
        state=Job.State.RUNNING,
        turn=F("turn") + 1,
        attempts_without_progress=F("attempts_without_progress") + 1,
        started_at=Coalesce("started_at", Now()),
        working_since=Now(),
        updated_at=Now(),
    )
    return Job.objects.get(pk=job_id) if begun else None


def _turn_work(job: Job) -> Slice:
    started = time.monotonic()
    if job.attempts_without_progress > MOST_ATTEMPTS_WITHOUT_PROGRESS:
        last = f" The last error: {job.error}" if job.error else " Its worker died each time."
        said = f"Given up after {MOST_ATTEMPTS_WITHOUT_PROGRESS} attempts without progress.{last}"
        return _fail(job, said, started)
    try:
        finished = handler_for(job.kind)(job, started + SLICE_SECONDS)
        return _turn_end(job, finished, started)
    except JobCanceled:
        Job.objects.filter(pk=job.pk).update(**_worked(started))
        return Slice.CANCELED
    except Exception as error:
        if outage := outage_of(error):
            logger.warning("Job %s is left to the next sweep: %s", job.pk, error)
            full = f"{DISK_FULL.sentence} The job goes on when there is room."
            _note_trouble(job, full if outage is DISK_FULL else str(error).strip(), started)
            return Slice.LATER
        if isinstance(error, Refused):
            return _fail(job, str(error), started)
        logger.exception("Job %s failed", job.pk)
        return _fail(job, f"{type(error).__name__}: {error}", started)


def _worked(started: float) -> dict[str, Any]:
    """What a slice that began then (of `time.monotonic`) changes when it ends."""
    seconds = time.monotonic() - started
    return {
        "active_seconds": F("active_seconds") + seconds,
        "working_since": None,
        "updated_at": Now(),
    }


def _turn_end(job: Job, finished: bool, started: float) -> Slice:
    changes: dict[str, Any] = {"state": Job.State.DONE, "finished_at": Now()} if finished else {}
    ended = Job.objects.filter(pk=job.pk, state=Job.State.RUNNING).update(
        attempts_without_progress=0, error="", **_worked(started), **changes
    )
    if not ended:
        raise JobCanceled
    return Slice.FINISHED if finished else Slice.MORE


def _fail(job: Job, text: str, started: float) -> Slice:
    Job.objects.filter(pk=job.pk, state=Job.State.RUNNING).update(
        state=Job.State.FAILED, error=text, finished_at=Now(), **_worked(started)
    )
    return Slice.FAILED


def _note_trouble(job: Job, text: str, started: float) -> None:
    """Store on the job why it waits, if the database allows it."""
    try:
        if not connection.is_usable():
            connection.close()
        Job.objects.filter(pk=job.pk).update(error=text, **_worked(started))
    except (OperationalError, InterfaceError):
        connection.close()


def _send_on_commit(job: Job) -> None:
    # robust: if the broker fails, the job is stored anyway, and the sweep sends a message later.
    transaction.on_commit(lambda: _send(job.pk, job.turn), robust=True)


def _send(job_id: int, turn: int) -> None:
    BROKER.tell(lambda: current_app.send_task(TASK, args=[job_id, turn]))
