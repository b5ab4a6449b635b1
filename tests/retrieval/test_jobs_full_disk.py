"""Jobs on a disk that is nearly or really full wait, say so, and go on."""

import pytest

from core.jobs.kinds import JobFailed, job_handler
from core.jobs.models import Job
from core.jobs.services import DISK_LOW, Slice, job_create, job_slice_run
from core.outages import free_bytes
from retrieval.embedding.services import embedding_job_create
from tests.processes import fill, wait_for

FULL = "The server's disk is full. The job goes on when there is room."


@pytest.fixture
def writing(handlers, small_disk):
    """Makes a job that writes a file on a small disk, and gives up in its own words or not."""

    def job(own_words):
        @job_handler("write")
        def write(job, deadline):
            try:
                (small_disk / "result").write_bytes(bytes(10_000))
            except OSError as error:
                if own_words:
                    raise JobFailed("The result was not written.") from error
                raise
            return True

        return job_create(kind="write", params={})

    return job


@pytest.mark.django_db
@pytest.mark.parametrize("own_words", [False, True])
def test_a_job_that_finds_no_room_goes_on_when_there_is(writing, small_disk, own_words):
    job = writing(own_words)
    filler = fill(small_disk)
    assert job_slice_run(job_id=job.pk) is Slice.LATER
    job.refresh_from_db()
    assert (job.state, job.error) == ("running", FULL)
    filler.unlink()
    assert job_slice_run(job_id=job.pk) is Slice.FINISHED
    job.refresh_from_db()
    assert (job.state, job.error) == ("done", "")


@pytest.mark.django_db(transaction=True)
def test_a_worker_leaves_the_last_room_to_judgments(start_worker, demo_encoder):
    low = start_worker(DISK_MIN_FREE_BYTES=str(2 * free_bytes()))
    job = embedding_job_create(created_by=None)

    def said(state, error):
        job.refresh_from_db()
        return (job.state, job.error) == (state, error)

    wait_for(lambda: said(Job.State.QUEUED, DISK_LOW), what="the job's reason to wait")
    low.kill()
    start_worker(DISK_MIN_FREE_BYTES="0")
    wait_for(lambda: said(Job.State.DONE, ""), what="the job")
