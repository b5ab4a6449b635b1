"""Jobs slice by slice, with the messages caught instead of sent."""

import errno
from datetime import timedelta
from io import BytesIO

import pytest
from celery import Celery
from django.db import IntegrityError, OperationalError, connections, transaction
from django.db.models.functions import Now

from core.errors import Conflict
from core.jobs.kinds import JobFailed, UnknownJobKind, job_handler
from core.jobs.models import Job, JobItemError
from core.jobs.services import (
    DISK_LOW,
    MOST_ATTEMPTS_WITHOUT_PROGRESS,
    Slice,
    job_advance,
    job_cancel,
    job_create,
    job_item_error,
    job_retry,
    job_slice_run,
    jobs_sweep,
)
from core.locks import lock_key
from core.outages import free_bytes
from core.sql import copy, fetch_all
from tests.processes import wait_for
from tests.threads import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def counting(handlers):
    """A kind of job that counts to its total, one a slice."""

    @job_handler("count")
    def step(job, deadline):
        with transaction.atomic():
            job_advance(job=job, done=1, total=job.params["to"])
        return job.done >= job.params["to"]

    return step


def counter(to=3, **fields):
    return job_create(kind="count", params={"to": to}, **fields)


def run(messages):
    """Work off all messages in turn, as one worker does; returns the ids of the jobs in order."""
    worked = []
    while messages:
        job_id, turn = messages.pop(0)
        if job_slice_run(job_id=job_id, turn=turn) is not Slice.STALE:
            worked.append(job_id)
    return worked


def failing(error):
    @job_handler("fail")
    def step(job, deadline):
        raise error

    job = job_create(kind="fail", params={})
    outcome = job_slice_run(job_id=job.pk)
    job.refresh_from_db()
    return job, outcome


def test_a_job_is_announced_only_when_it_is_committed(
    counting, messages, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        job = counter()
        assert messages == []
    assert messages == [(job.pk, 0)]


def test_a_broker_that_is_away_loses_no_job(
    counting, monkeypatch, django_capture_on_commit_callbacks
):
    def away(app, task, args):
        raise OSError("Connection refused")

    monkeypatch.setattr(Celery, "send_task", away)
    with django_capture_on_commit_callbacks(execute=True):
        job = counter()
    assert Job.objects.get(pk=job.pk).state == Job.State.QUEUED


def test_slices_go_on_until_the_job_is_done(counting, messages):
    job = counter(3)
    Job.objects.filter(pk=job.pk).update(attempts_without_progress=5)
    messages.append((job.pk, 0))
    assert run(messages) == [job.pk] * 3
    job.refresh_from_db()
    assert (job.state, job.done, job.total, job.percent, job.turn) == ("done", 3, 3, 100, 3)
    assert job.started_at <= job.finished_at
    assert (job.active_seconds > 0, job.attempts_without_progress) == (True, 0)


@pytest.mark.parametrize("end", ["ends", "goes on", "fails", "waits", "is canceled"])
def test_the_time_of_each_slice_counts_while_it_works_and_after(handlers, messages, end):
    during = []

    @job_handler("slow")
    def step(job, deadline):
        # As if it had begun a minute ago.
        Job.objects.filter(pk=job.pk).update(working_since=Now() - timedelta(minutes=1))
        job_advance(job=job, done=6)
        during.append(Job.objects.get(pk=job.pk))
        assert during[0].working_seconds >= 60
        assert 0 < during[0].rate <= 0.1
        if end == "fails":
            raise ValueError("no")
        if end == "waits":
            raise OSError(errno.ENOSPC, "full")
        if end == "is canceled":
            job_cancel(job=job)
        return end == "ends"

    job = job_create(kind="slow", params={})
    job_slice_run(job_id=job.pk)
    # What a killed worker left doesn't count on: nobody holds the job.
    assert during[0].working_seconds == 0
    job.refresh_from_db()
    assert job.working_since is None
    assert job.active_seconds > 0
    assert job.working_seconds == job.active_seconds


def test_a_repeated_or_old_message_does_nothing(counting, messages):
    job = counter(3)
    assert job_slice_run(job_id=job.pk, turn=0) is Slice.MORE
    assert job_slice_run(job_id=job.pk, turn=0) is Slice.STALE
    assert job_slice_run(job_id=job.pk, turn=7) is Slice.STALE
    assert job_slice_run(job_id=10**9) is Slice.STALE
    assert Job.objects.get(pk=job.pk).done == 1
    assert messages == [(job.pk, 1)]


def test_sweeps_never_make_a_job_go_round_twice(counting, messages):
    job = counter(4)
    for _ in range(5):
        jobs_sweep()
    other = counter(4)
    jobs_sweep()
    assert messages == [*[(job.pk, 0)] * 6, (other.pk, 0)]
    # They take turns.
    assert run(messages) == [job.pk, other.pk] * 4
    assert jobs_sweep() == 0


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such leaf"), "ValueError: no such leaf"),
        (JobFailed("The model is gone."), "The model is gone."),
        (Conflict("The run is damaged."), "The run is damaged."),
        (IntegrityError("duplicate key"), "IntegrityError: duplicate key"),
    ],
)
def test_an_error_fails_the_job_with_its_text(handlers, messages, error, said):
    job, outcome = failing(error)
    assert (outcome, job.state, job.error, messages) == (Slice.FAILED, "failed", said, [])


def test_trouble_of_the_database_is_left_to_the_sweep(handlers, messages):
    job, outcome = failing(OperationalError("terminating connection"))
    assert (outcome, job.state, job.error) == (Slice.LATER, "running", "terminating connection")
    assert messages == []
    for state in ("done", "failed", "canceled"):
        Job.objects.create(kind="fail", state=state)
    assert jobs_sweep() == 1


@pytest.mark.parametrize("own_words", [False, True])
def test_a_job_that_finds_no_room_goes_on_when_there_is(handlers, messages, own_words):
    disk = [OSError(errno.ENOSPC, "No space left on device")]

    @job_handler("write")
    def write(job, deadline):
        try:
            raise disk.pop() if disk else StopIteration
        except OSError as error:
            if own_words:
                raise JobFailed("The result was not written.") from error
            raise
        except StopIteration:
            return True

    job = job_create(kind="write", params={})
    assert job_slice_run(job_id=job.pk) is Slice.LATER
    job.refresh_from_db()
    full = "The server's disk is full. The job goes on when there is room."
    assert (job.state, job.error) == ("running", full)
    assert job_slice_run(job_id=job.pk) is Slice.FINISHED
    job.refresh_from_db()
    assert (job.state, job.error) == ("done", "")


def test_jobs_leave_the_last_room_to_judgments(counting, messages, settings):
    job = counter(1)
    settings.DISK_MIN_FREE_BYTES = 2 * free_bytes()
    assert job_slice_run(job_id=job.pk) is Slice.LATER
    job.refresh_from_db()
    assert (job.state, job.done, job.error) == ("queued", 0, DISK_LOW)
    settings.DISK_MIN_FREE_BYTES = 0
    assert job_slice_run(job_id=job.pk) is Slice.FINISHED


def test_a_job_that_never_gets_anywhere_is_given_up(handlers, messages):
    job, _ = failing(OperationalError("disk full"))
    outcomes = [job_slice_run(job_id=job.pk) for _ in range(MOST_ATTEMPTS_WITHOUT_PROGRESS)]
    assert set(outcomes[:-1]) == {Slice.LATER}
    assert outcomes[-1] is Slice.FAILED
    job.refresh_from_db()
    assert job.error.endswith("attempts without progress. The last error: disk full")
    dying = Job.objects.create(
        kind="fail", attempts_without_progress=MOST_ATTEMPTS_WITHOUT_PROGRESS
    )
    assert job_slice_run(job_id=dying.pk) is Slice.FAILED
    dying.refresh_from_db()
    assert "Its worker died each time" in dying.error


def test_an_unknown_kind_is_refused_and_fails_where_it_is_found(db, messages):
    with pytest.raises(UnknownJobKind, match="kind 'juggle'"):
        job_create(kind="juggle", params={})
    job = Job.objects.create(kind="juggle")
    assert job_slice_run(job_id=job.pk) is Slice.FAILED


def test_cancelling_undoes_the_work_in_hand(handlers, messages):
    @job_handler("canceled")
    def step(job, deadline):
        job_cancel(job=job)
        with transaction.atomic():
            job_item_error(job=job, item="x", message="never seen")
            job_advance(job=job, done=1)
        return False

    job = job_create(kind="canceled", params={})
    assert job_slice_run(job_id=job.pk) is Slice.CANCELED
    job.refresh_from_db()
    assert (job.state, job.done, JobItemError.objects.count()) == ("canceled", 0, 0)
    assert messages == []


def test_a_job_cancelled_during_its_last_slice_stays_cancelled(handlers, messages):
    job_handler("late")(lambda job, deadline: job_cancel(job=job))
    job = job_create(kind="late", params={})
    assert job_slice_run(job_id=job.pk) is Slice.CANCELED
    assert Job.objects.get(pk=job.pk).state == "canceled"
    assert job_cancel(job=job) is False


def test_a_retry_goes_on_where_the_job_was(counting, messages, django_capture_on_commit_callbacks):
    job = counter(3)
    job_slice_run(job_id=job.pk)
    assert job_retry(job=job) is False
    job_cancel(job=job)
    messages.clear()
    with django_capture_on_commit_callbacks(execute=True):
        assert job_retry(job=job) is True
    assert messages == [(job.pk, 1)]
    run(messages)
    job.refresh_from_db()
    assert (job.state, job.done, job.finished_at is not None) == ("done", 3, True)


def test_an_item_that_fails_twice_is_named_once(counting):
    job = counter()
    job_item_error(job=job, item="image 5", message="first")
    job_item_error(job=job, item="image 5", message="second")
    assert list(job.item_errors.values_list("item", "message")) == [("image 5", "second")]


def test_progress_is_part_of_the_work_s_transaction(counting, messages):
    job = counter()
    job_slice_run(job_id=job.pk)
    job.refresh_from_db()
    with transaction.atomic():
        job_advance(job=job, done=5, cursor={"last": 5})
        transaction.set_rollback(True)
    job.refresh_from_db()
    assert (job.done, job.cursor) == (1, {})


def test_percent_and_rate():
    assert Job(total=None).percent is None
    assert Job(total=0).percent == 100
    assert Job(total=200, done=100, failed=1).percent == 50
    assert Job(total=2, done=3).percent == 100
    assert Job().rate is None
    assert Job(done=9, failed=1, active_seconds=4).rate == 2.5


def test_a_job_that_another_worker_holds_is_let_be(counting, messages):
    job = counter()
    other = connections.create_connection("default")
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [lock_key("job", job.pk)])
    assert job_slice_run(job_id=job.pk) is Slice.BUSY
    # The lock ends with the worker's connection, a little later.
    other.close()
    wait_for(lambda: job_slice_run(job_id=job.pk) is Slice.MORE, what="the end of the lock")
    job.refresh_from_db()
    assert job.done == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("cut", [fetch_all, lambda sql: copy(f"COPY ({sql}) TO STDOUT", BytesIO())])
def test_a_connection_cut_in_the_middle_leaves_the_job_to_the_sweep(handlers, messages, cut):
    @job_handler("cut")
    def step(job, deadline):
        with transaction.atomic():
            job_advance(job=job, done=1)
            cut("SELECT pg_terminate_backend(pg_backend_pid())")
        return True

    job = job_create(kind="cut", params={})
    messages.clear()
    assert job_slice_run(job_id=job.pk) is Slice.LATER
    job.refresh_from_db()
    assert (job.state, job.done) == ("running", 0)
    assert "connection" in job.error
    assert jobs_sweep() == 1


@pytest.mark.django_db(transaction=True)
def test_many_workers_at_once_count_each_step_once(counting, messages):
    job = counter(40)

    def work():
        while True:
            outcome = job_slice_run(job_id=job.pk)
            if outcome in (Slice.STALE, Slice.FINISHED):
                break

    at_once(*[work] * 4)
    job.refresh_from_db()
    assert (job.state, job.done) == ("done", 40)
