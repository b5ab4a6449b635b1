"""Workers claim ranges of a job; what one leaves, the next takes over."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import connection

from core.jobs import services as job_services
from core.jobs.kinds import JobCanceled, count_workers_by
from core.jobs.models import Job
from core.jobs.services import Slice, job_cancel, job_create, job_slice_run
from retrieval.embedding import device as embedding_device
from retrieval.embedding.device import device_held
from retrieval.embedding.models import EmbeddingRange
from retrieval.embedding.ranges import START, Ranges, Remaining
from retrieval.embedding.services import (
    FIRST_RANGE,
    PARTICIPANT_KIND,
    embedding_job_create,
    embedding_participant_step,
)
from tests.processes import wait_for
from tests.retrieval.making import embed_rows, image_row

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("messages")]


@pytest.fixture
def workers():
    """Sets how many workers live."""
    from annotator.processes.worker import live_workers

    def alive(count):
        count_workers_by(lambda: count)

    yield alive
    count_workers_by(live_workers)


@pytest.fixture
def job(toy_model):
    """A running job over ten images, and none of them embedded."""
    for number in range(1, 11):
        image_row(number)
    return Job.objects.create(kind="embed", params={}, state="running", cursor=START)


@contextmanager
def elsewhere():
    """Run functions on another connection, as another worker: `call(function)` gives its answer."""
    with ThreadPoolExecutor(1) as other:
        try:
            yield lambda function: other.submit(function).result(30)
        finally:
            other.submit(lambda: connection.close()).result()


def taken(ranges, count=10, range_size=4):
    return [item.image_id for item in ranges.take(count, range_size=range_size)]


def done(ranges, job, model, items):
    """Embed and settle items as a slice does."""
    embed_rows(model, {item.image_id: [1, 0, 0] for item in items})
    ranges.settle(items)


def test_images_and_embeddings_are_met_by_their_keys_however_stale_the_statistics_are(
    job, toy_model
):
    embed_rows(toy_model, {number: [1, 0, 0] for number in range(1, 9)})
    plans = []

    def explain(execute, sql, values, many, context):
        if sql.lstrip().startswith("SELECT i.id"):
            execute(f"EXPLAIN {sql}", values, many, context)
            plans.append("\n".join(row[0] for row in context["cursor"].fetchall()))
        return execute(sql, values, many, context)

    with connection.execute_wrapper(explain), Ranges(job=job, model=toy_model) as ranges:
        assert [item.image_id for item in ranges.take(5, range_size=100)] == [9, 10]
    assert plans
    for plan in plans:
        assert plan.count("Merge Anti Join") == 3
        assert "Index Scan using retrieval_image_pkey" in plan
        assert "Nested Loop" not in plan
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('enable_nestloop')")
        assert cursor.fetchone() == ("on",)


def test_two_workers_never_have_the_same_image(job, toy_model):
    with elsewhere() as other, Ranges(job=job, model=toy_model) as ours:
        theirs = Ranges(job=Job.objects.get(), model=toy_model)
        assert taken(ours, 3) == [1, 2, 3]
        assert other(lambda: taken(theirs, 5)) == [5, 6, 7, 8, 9]
        assert taken(ours, 5) == [4]
        assert (ours.left, other(lambda: taken(theirs, 5))) == (Remaining.ELSEWHERE, [10])
        other(theirs.close)
        assert taken(ours) == [5, 6, 7, 8, 9, 10]
    assert EmbeddingRange.objects.count() == 3


def test_a_range_that_was_left_goes_on_behind_what_is_done(job, toy_model):
    with Ranges(job=job, model=toy_model) as ranges:
        done(ranges, job, toy_model, ranges.take(3, range_size=4))
    with Ranges(job=job, model=toy_model) as ranges:
        assert taken(ranges, 2) == [4, 5]


def test_images_that_came_behind_the_cursor_get_a_pass_of_their_own(job, toy_model):
    with Ranges(job=job, model=toy_model) as ranges:
        done(ranges, job, toy_model, ranges.take(10, range_size=10))
        image_row(0)
        assert taken(ranges) == [0]


def test_a_connection_that_ends_leaves_its_ranges(job, toy_model):
    with elsewhere() as other:
        theirs = Ranges(job=Job.objects.get(), model=toy_model)
        assert other(lambda: taken(theirs, 10, 10)) == list(range(1, 11))
        with Ranges(job=job, model=toy_model) as ours:
            assert (taken(ours), ours.left) == ([], Remaining.ELSEWHERE)
            other(lambda: connection.close())
            # The server notices a little later.
            assert wait_for(lambda: taken(ours)) == list(range(1, 11))
        other(theirs.close)


def test_a_cancelled_job_gives_nothing(job, toy_model):
    job_cancel(job=job)
    with Ranges(job=job, model=toy_model) as ranges, pytest.raises(JobCanceled):
        ranges.take(1, range_size=1)
    assert EmbeddingRange.objects.count() == 0


def test_one_slice_at_a_time_on_a_device(db, monkeypatch):
    monkeypatch.setattr(embedding_device, "PATIENCE_SECONDS", 0)

    def held():
        with device_held() as ours:
            return ours

    with elsewhere() as other, device_held() as ours:
        assert (ours, other(held)) == (True, False)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
        assert other(held) is True
    assert held() is True


def test_who_finds_the_device_busy_gives_the_slice_back(job, tiny_model, monkeypatch):
    monkeypatch.setattr(embedding_device, "PATIENCE_SECONDS", 0)
    Job.objects.update(params={"model": tiny_model})
    with elsewhere() as other, device_held():
        assert other(lambda: job_slice_run(job_id=job.pk)) is Slice.MORE
    assert Job.objects.get().total is None


@pytest.fixture
def large(store, tiny_model, settings):
    """A job with enough to do for three workers; its files are missing."""
    settings.EMBEDDING_MODEL = tiny_model
    for number in range(2 * FIRST_RANGE):
        image_row(number)
    return embedding_job_create()


def invited():
    return list(Job.objects.filter(kind=PARTICIPANT_KIND).order_by("pk"))


def test_the_other_workers_are_invited_once(large, workers, monkeypatch, messages):
    monkeypatch.setattr(job_services, "SLICE_SECONDS", 0)
    workers(3)
    assert job_slice_run(job_id=large.pk) is Slice.MORE
    assert [job.params["job"] for job in invited()] == [large.pk] * 2
    assert {job.pk for job in invited()} < {job_id for job_id, _ in messages}
    # One cannot load the model on its machine: nobody is asked in its place.
    Job.objects.filter(pk=invited()[0].pk).update(state="failed")
    job_slice_run(job_id=large.pk)
    assert len(invited()) == 2


def test_who_is_invited_does_its_part_of_the_same_job(large, workers, monkeypatch):
    monkeypatch.setattr(job_services, "SLICE_SECONDS", 0)
    workers(2)
    job_slice_run(job_id=large.pk)
    (own,) = invited()
    assert job_slice_run(job_id=own.pk) is Slice.MORE
    own.refresh_from_db()
    before = large
    large.refresh_from_db()
    assert own.failed > 0
    assert large.failed > own.failed
    while job_slice_run(job_id=large.pk) is Slice.MORE:
        pass
    large.refresh_from_db()
    assert (large.state, large.failed, large.total) == ("done", 2 * FIRST_RANGE, before.total)
    assert large.item_errors.count() == 2 * FIRST_RANGE
    assert job_slice_run(job_id=own.pk) is Slice.FINISHED


def test_who_is_invited_is_cancelled_with_the_job(large, workers, monkeypatch):
    monkeypatch.setattr(job_services, "SLICE_SECONDS", 0)
    workers(2)
    job_slice_run(job_id=large.pk)
    (own,) = invited()
    job_cancel(job=large)
    assert job_slice_run(job_id=own.pk) is Slice.CANCELED
    own.refresh_from_db()
    assert own.state == "canceled"


def test_who_is_invited_leaves_when_the_others_are_gone(large, workers):
    workers(1)
    own = job_create(kind=PARTICIPANT_KIND, params={"job": large.pk, "model": "toy"})
    Job.objects.filter(pk=large.pk).update(state="running")
    assert embedding_participant_step(own, 0.0) is True
