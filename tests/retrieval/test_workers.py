"""Real worker processes, on both brokers, killed in the middle of the work."""

import shutil
import subprocess
from collections import Counter

import pytest
import redis
from django.db import connection

from core.jobs.models import Job
from core.jobs.services import job_create
from retrieval.embedding.models import Embedding
from retrieval.embedding.services import embedding_job_create
from tests.processes import free_port, wait_for
from tests.retrieval.making import repeated_images

COUNT = 400

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=["files", "redis"])
def broker(request, tmp_path):
    """The environment that makes a worker use the broker of each kind."""
    if request.param == "files":
        yield {}
        return
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    port = free_port()
    with subprocess.Popen(
        [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)],
        stdout=subprocess.DEVNULL,
    ) as server:

        def answers():
            try:
                return redis.Redis(port=port).ping()
            except redis.ConnectionError:
                return False

        wait_for(answers, what="Redis")
        yield {"CELERY_BROKER_URL": f"redis://127.0.0.1:{port}/0"}
        server.terminate()


@pytest.fixture
def corpus(settings, tiny_model):
    """Images of four contents, and the tiny model."""
    settings.EMBEDDING_MODEL = tiny_model
    repeated_images(COUNT, ("red", "green", "blue", "tan"), (64, 48))


def embedded():
    return Embedding.objects.count()


def ended(job):
    job.refresh_from_db()
    return job.state not in Job.UNFINISHED


def test_sigkill_in_the_middle_and_every_image_is_embedded_once(corpus, broker, start_worker):
    job = embedding_job_create()
    small_batches = {"EMBEDDING_BATCH_SIZE": "2", **broker}
    worker = start_worker(**small_batches)
    wait_for(lambda: embedded() >= COUNT // 6, what="part of the work", pause=0.01)
    worker.kill()
    job.refresh_from_db()
    assert 0 < embedded() < COUNT
    assert job.state == "running"
    start_worker(**small_batches)
    wait_for(lambda: ended(job), what="the end of the job")
    assert (job.state, job.error) == ("done", "")
    assert (job.done, job.failed, job.total) == (COUNT, 0, COUNT)
    per_image = Counter(Embedding.objects.values_list("image_id", flat=True))
    assert per_image == Counter(range(COUNT))


def test_two_workers_share_the_jobs_and_double_nothing(corpus, start_worker):
    first = embedding_job_create()
    second = Job.objects.create(kind="embed", params=first.params)
    workers = [start_worker(EMBEDDING_BATCH_SIZE="4") for _ in range(2)]
    for job in (first, second):
        wait_for(lambda job=job: ended(job), what="the end of the jobs")
        assert (job.state, job.failed, job.error) == ("done", 0, "")
    assert embedded() == COUNT
    assert all(worker.alive() for worker in workers)


def test_cut_connections_lose_nothing(corpus, start_worker):
    job = embedding_job_create()
    start_worker(EMBEDDING_BATCH_SIZE="2")
    wait_for(lambda: embedded() >= COUNT // 6, what="part of the work", pause=0.01)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        assert cursor.fetchone()[0] >= 1
    wait_for(lambda: ended(job), what="the end of the job")
    assert (job.state, job.done, job.failed) == ("done", COUNT, 0)
    assert embedded() == COUNT


def test_a_message_that_was_lost_is_made_up_for(corpus, start_worker, messages):
    job = job_create(kind="embed", params={"model": "/nowhere"})
    start_worker()
    wait_for(lambda: ended(job), what="the end of the job")
    assert (job.state, "no directory" in job.error) == ("failed", True)
