"""Real worker processes, killed or cut off in the middle of the work."""

import os
import signal
from collections import Counter

import psutil
import pytest
from django.db import connection

from core.jobs.models import Job
from core.jobs.services import job_create
from retrieval.embedding.models import Embedding
from retrieval.embedding.services import embedding_job_create
from tests.processes import redis_server, wait_for
from tests.retrieval.making import repeated_images

COUNT = 400

pytestmark = pytest.mark.django_db(transaction=True)


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


def assert_each_once():
    per_image = Counter(Embedding.objects.values_list("image_id", flat=True))
    assert per_image == Counter(range(COUNT))


def test_sigkill_in_the_middle_and_every_image_is_embedded_once(corpus, start_worker, tmp_path):
    with redis_server(tmp_path) as redis:
        options = {"EMBEDDING_BATCH_SIZE": "2", "CELERY_BROKER_URL": redis.url}
        job = embedding_job_create()
        worker = start_worker(**options)
        wait_for(lambda: embedded() >= COUNT // 6, what="part of the work", pause=0.01)
        worker.kill()
        job.refresh_from_db()
        assert 0 < embedded() < COUNT
        assert job.state == "running"
        start_worker(**options)
        wait_for(lambda: ended(job), what="the end of the job")
    assert (job.state, job.error) == ("done", "")
    assert (job.done, job.failed, job.total) == (COUNT, 0, COUNT)
    assert_each_once()


def test_sigterm_gives_back_what_is_in_hand_and_every_image_is_embedded_once(corpus, start_worker):
    job = embedding_job_create()
    told = start_worker(EMBEDDING_BATCH_SIZE="2", CUDA_VISIBLE_DEVICES="none-a")
    wait_for(lambda: embedded() >= COUNT // 6, what="part of the work", pause=0.01)
    # As Kubernetes and systemd do, to the first process alone.
    told.process.terminate()
    assert told.process.wait(120) == 0
    job.refresh_from_db()
    before = embedded()
    assert (before < COUNT, job.state, job.done) == (True, "running", before)
    [line] = job.result.values()
    assert (line["device"], line["done"], line["ranges"]) == ("CPU none-a", before, [])
    # To all of its processes: it comes to the same, for those of the pool leave it to the first.
    group = start_worker(EMBEDDING_BATCH_SIZE="2", CUDA_VISIBLE_DEVICES="none-b")
    wait_for(lambda: embedded() >= before + COUNT // 20, what="more of the work", pause=0.01)
    pool = psutil.Process(group.process.pid).children()
    for one in pool:
        one.terminate()
    wait_for(lambda: embedded() >= before + COUNT // 10, what="yet more of the work", pause=0.01)
    assert psutil.Process(group.process.pid).children() == pool
    os.killpg(group.process.pid, signal.SIGTERM)
    assert group.process.wait(120) == 0
    assert embedded() < COUNT
    start_worker(EMBEDDING_BATCH_SIZE="2", CUDA_VISIBLE_DEVICES="none-c")
    wait_for(lambda: ended(job), seconds=120, what="the end of the job")
    assert (job.state, job.error, job.done, job.failed) == ("done", "", COUNT, 0)
    assert sum(one["done"] for one in job.result.values()) == COUNT
    assert_each_once()


def test_two_workers_share_two_jobs_through_cut_connections(corpus, start_worker):
    first = embedding_job_create()
    jobs = [first, Job.objects.create(kind="embed", params=first.params)]
    workers = [start_worker(EMBEDDING_BATCH_SIZE="2", concurrency=1) for _ in range(2)]
    wait_for(lambda: embedded() >= COUNT // 6, what="part of the work", pause=0.01)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        assert cursor.fetchone()[0] >= 2
    for job in jobs:
        wait_for(lambda job=job: ended(job), what="the end of the jobs")
        assert (job.state, job.failed, job.error) == ("done", 0, "")
    assert_each_once()
    assert all(worker.alive() for worker in workers)


def test_a_message_that_was_lost_is_made_up_for(corpus, start_worker, messages):
    job = job_create(kind="embed", params={"model": "/nowhere"})
    start_worker()
    wait_for(lambda: ended(job), what="the end of the job")
    assert (job.state, "no directory" in job.error) == ("failed", True)
