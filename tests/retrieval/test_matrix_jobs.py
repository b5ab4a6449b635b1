"""Matrices are packed by workers, asked for when they are missed."""

import threading
from datetime import timedelta

import numpy as np
import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from core.jobs.models import Job
from core.jobs.services import Slice, job_cancel, job_slice_run
from retrieval.corpus.models import Image
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding
from retrieval.ranking import matrices
from retrieval.ranking.building import pack
from retrieval.ranking.files import Manifest, folder_of, sole_writer
from retrieval.ranking.matrices import pack_request
from retrieval.ranking.selectors import half_rounded, rank_images, ranking_method
from tests.retrieval.making import random_vectors
from tests.retrieval.matrices import embed, images, same_as_scan

pytestmark = pytest.mark.django_db(transaction=True)

VECTORS = random_vectors(1500, 16)
QUERY = half_rounded(random_vectors(1, 16, seed=5)[0])


@pytest.fixture
def model(db, settings, tmp_path, monkeypatch):
    """A model without embeddings, and images; each ranking that misses the matrix asks for it, from
    a thousand embeddings on.
    """
    settings.VAR_DIR = tmp_path
    monkeypatch.setattr(matrices, "BETWEEN_REQUESTS", 0.0)
    monkeypatch.setattr(matrices, "SMALLEST", 1000)
    images(range(1500))
    return embedding_model_get_or_create(name="m", dimension=16)


def work(job):
    outcome = job_slice_run(job_id=job.pk)
    while outcome is Slice.MORE:
        outcome = job_slice_run(job_id=job.pk)
    job.refresh_from_db()
    return job


def test_a_ranking_that_misses_the_matrix_asks_for_it_once(model):
    embed(model, range(1200), VECTORS[:1200])
    for _ in range(3):
        rank_images(model=model, text_vector=QUERY, limit=5)
    job = Job.objects.get()
    assert (job.kind, job.title) == ("pack_embeddings", "Pack the matrix of m")
    assert work(job).state == "done"
    assert (job.done, job.total) == (1200, 1200)
    assert ranking_method(model) == "matrix"
    rank_images(model=model, text_vector=QUERY, limit=5)
    assert Job.objects.count() == 1


def test_a_matrix_that_lags_far_behind_is_asked_for(model):
    embed(model, range(100), VECTORS[:100])
    pack(model)
    embed(model, range(100, 1099), VECTORS[100:1099])
    rank_images(model=model, text_vector=QUERY, limit=5)
    assert not Job.objects.exists()
    embed(model, [1099], VECTORS[:1])
    rank_images(model=model, text_vector=QUERY, limit=5)
    assert work(Job.objects.get()).done == 1000
    assert [run.rows for run in Manifest.load(folder_of(model)).runs] == [100, 1000]


def test_nothing_is_asked_for_while_a_job_waits_or_when_it_went_wrong(model):
    embed(model, range(1200), VECTORS[:1200])
    job = pack_request(model=model)
    assert pack_request(model=model) == job
    job_cancel(job=job)
    assert pack_request(model=model) is None
    Job.objects.update(finished_at=timezone.now() - timedelta(minutes=61))
    again = pack_request(model=model)
    assert again not in (None, job)
    assert work(again).state == "done"
    assert pack_request(model=model) is None
    embed(model, [1200], VECTORS[:1])
    assert pack_request(model=model) is not None


def test_a_ranking_in_a_transaction_asks_when_that_is_committed(model):
    embed(model, range(1200), VECTORS[:1200])
    with transaction.atomic():
        rank_images(model=model, text_vector=QUERY, limit=5)
        assert not Job.objects.exists()
    assert Job.objects.count() == 1


def test_wrong_content_is_packed_anew_by_the_job(model):
    embed(model, range(1200), VECTORS[:1200])
    pack(model)
    job = pack_request(model=model, rebuild=True)
    assert work(job).done == 1200
    assert Manifest.load(folder_of(model)).next_run == 3


def test_what_comes_while_a_matrix_is_packed_anew_is_read_alone(model, monkeypatch):
    def packing(*arguments, **options):
        packed = pack(*arguments, **options)
        embed(model, range(1200, 1500), VECTORS[1200:])
        return packed

    monkeypatch.setattr(matrices, "LAG", 100)
    monkeypatch.setattr(matrices, "pack", packing)
    embed(model, range(1200), VECTORS[:1200])
    assert work(pack_request(model=model, rebuild=True)).done == 1500
    assert [run.rows for run in Manifest.load(folder_of(model)).runs] == [1200, 300]


def test_a_worker_with_another_state_folder_leaves_the_job_alone(
    model, settings, tmp_path, monkeypatch
):
    monkeypatch.setattr(matrices, "PAUSE", 0.0)
    monkeypatch.setattr(matrices, "PATIENCE", 2)
    embed(model, range(1200), VECTORS[:1200])
    job = pack_request(model=model)
    settings.VAR_DIR = tmp_path / "elsewhere"
    assert [job_slice_run(job_id=job.pk) for _ in range(2)] == [Slice.MORE, Slice.MORE]
    settings.VAR_DIR = tmp_path
    assert work(job).state == "done"
    settings.VAR_DIR = tmp_path / "elsewhere"
    other = pack_request(model=model)
    assert other != job
    settings.VAR_DIR = tmp_path
    assert work(other).state == "failed"
    assert "No worker runs where" in other.error


def test_a_job_waits_for_another_process(model, monkeypatch):
    monkeypatch.setattr(matrices, "PAUSE", 0.0)
    embed(model, range(1200), VECTORS[:1200])
    job = pack_request(model=model)
    with sole_writer(folder_of(model)):
        assert job_slice_run(job_id=job.pk) is Slice.MORE
    assert work(job).state == "done"


def test_rankings_are_exact_while_the_corpus_changes_and_the_matrix_is_packed(model):
    embed(model, range(300), VECTORS[:300])
    pack(model)
    stop, errors, methods = threading.Event(), [], []

    def change():
        numbers = np.random.default_rng(1)
        while not stop.is_set():
            chosen = numbers.choice(1500, size=40, replace=False)
            embed(model, chosen, VECTORS[chosen])
            Embedding.objects.filter(model=model, image_id__in=chosen.tolist()[:15]).delete()

    def repack():
        turn = 0
        while not stop.is_set():
            turn += 1
            pack(model, rebuild=turn % 5 == 0)

    def rank():
        while not stop.is_set() and methods.count("matrix") < 30:
            # One snapshot, so that both ways see the same rows.
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                Image.objects.exists()
                assert same_as_scan(model, QUERY, limit=50)
                methods.append(ranking_method(model))

    def guarded(do):
        try:
            do()
        except Exception as error:
            errors.append(error)
            stop.set()
        finally:
            connections.close_all()

    *others, first, second = (
        threading.Thread(target=guarded, args=(do,)) for do in (change, repack, rank, rank)
    )
    for thread in (*others, first, second):
        thread.start()
    first.join()
    second.join()
    stop.set()
    for thread in others:
        thread.join()
    assert errors == []
    assert methods.count("matrix") >= 30
    pack(model)
    assert ranking_method(model) == "matrix"
    same_as_scan(model, QUERY)
