"""Two real workers on one embedding job, as on two machines with a device each."""

from collections import Counter

import pytest
from django.db import transaction

from core.jobs.models import Job
from core.jobs.services import job_cancel
from core.locks import lock_key, transaction_lock
from retrieval.corpus.models import Image
from retrieval.embedding.models import Embedding, EmbeddingRange
from retrieval.embedding.progress import embedding_progress
from retrieval.embedding.services import KIND, PARTICIPANT_KIND, embedding_job_create
from tests.processes import wait_for
from tests.retrieval.making import repeated_images

# More than one worker embeds before the other has loaded its model.
ENOUGH = 30_000

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def corpus(settings, tiny_model):
    """Many images of three contents, and the tiny model."""
    settings.EMBEDDING_MODEL = tiny_model
    repeated_images(ENOUGH, ("red", "green", "blue"), (300, 200))


@pytest.fixture
def two(start_worker, corpus):
    """Two workers with devices that don't exclude each other."""
    return [
        start_worker(EMBEDDING_BATCH_SIZE="2", CUDA_VISIBLE_DEVICES=device, concurrency=1)
        for device in ("none-a", "none-b")
    ]


def begin():
    """A job in which both workers have a part."""
    main = embedding_job_create()

    def both_work():
        main.refresh_from_db()
        invited = Job.objects.filter(kind=PARTICIPANT_KIND).first()
        return invited and 0 < invited.done < main.done

    wait_for(both_work, seconds=120, what="a part of each worker")
    assert main.state == "running"
    return main


def ended(kind):
    jobs = list(Job.objects.filter(kind=kind))
    return jobs and all(job.state not in Job.UNFINISHED for job in jobs)


def test_both_stop_when_the_job_is_cancelled_and_one_goes_on_when_the_other_is_killed(two):
    main = begin()
    assert job_cancel(job=main)
    wait_for(lambda: ended(PARTICIPANT_KIND), what="the end of the other's job")
    states = Job.objects.filter(kind__in=[KIND, PARTICIPANT_KIND]).values_list("state", flat=True)
    assert list(states) == ["canceled", "canceled"]
    main.refresh_from_db()
    assert main.done == Embedding.objects.count() < ENOUGH
    assert all(worker.alive() for worker in two)
    Job.objects.all().delete()
    Embedding.objects.all().delete()

    main = begin()
    two[1].kill()

    def taken_over():
        main.refresh_from_db()
        here, gone = embedding_progress(main).devices
        assert (here.device, here.gone) == ("CPU none-a", False)
        return gone.gone and gone.device == "CPU none-b" and gone.taken and not gone.left

    wait_for(taken_over, what="the range of the worker that was killed")
    main = finish()
    assert_each_once(main)
    wait_for(lambda: ended(PARTICIPANT_KIND), what="the end of the other's job")
    parts = Job.objects.filter(kind=PARTICIPANT_KIND).values_list("done", flat=True)
    assert 0 < sum(parts) < main.done


def finish():
    """The job at its end, which comes soon: what nobody has claimed needn't be waited for."""
    with transaction.atomic():
        # Nobody claims meanwhile.
        transaction_lock(lock_key("embedding_ranges", Job.objects.get(kind=KIND).pk))
        reached = Job.objects.get(kind=KIND).cursor["last"]
        Image.objects.filter(pk__gt=reached).delete()
    wait_for(lambda: ended(KIND), seconds=120, what="the end of the job")
    main = Job.objects.get(kind=KIND)
    assert (main.state, main.error, main.failed) == ("done", "", 0)
    return main


def assert_each_once(main):
    images = Counter(Image.objects.values_list("pk", flat=True))
    assert Counter(Embedding.objects.values_list("image_id", flat=True)) == images
    assert main.done == len(images)
    assert EmbeddingRange.objects.count() == 0
