"""The job that builds an approximate index, by a real worker and step by step."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections

from core.jobs.models import Job
from core.jobs.services import Slice, job_cancel, job_retry, job_slice_run
from core.locks import lock_key
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import EmbeddingModel
from retrieval.search.indexing import (
    IndexRefused,
    index_drop_job_create,
    index_job_create,
)
from retrieval.search.vector_indexes import partition_name, vector_index
from tests.processes import Worker, wait_for
from tests.retrieval.indexes import writing
from tests.retrieval.making import embed_rows, random_vectors

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def model(settings: Any) -> EmbeddingModel:
    """A model of 16 dimensions with 200 embeddings."""
    settings.EMBEDDING_MODEL = "toy-16"
    model = embedding_model_get_or_create(name="toy-16", dimension=16)
    embed_rows(model, dict(enumerate(random_vectors(200, 16))))
    return model


def finish(job: Job, slices: int = 60) -> Job:
    """Do slices of a job until it has ended."""
    for _ in range(slices):
        if job_slice_run(job_id=job.pk) is not Slice.MORE:
            break
    job.refresh_from_db()
    return job


def invalid_index(model: EmbeddingModel) -> None:
    """What a crash leaves: an index that the database doesn't use."""
    with connection.cursor() as cursor:
        name, table = f"{partition_name(model)}_hnsw", partition_name(model)
        cursor.execute(
            f"CREATE INDEX {name} ON {table} USING hnsw ((vector::halfvec(16)) halfvec_ip_ops)"
        )
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(%s)", [name]
        )


def kind_of(model: EmbeddingModel) -> tuple[str, int, int, bool] | None:
    found = vector_index(model)
    return found and (found.kind, found.m, found.ef_construction, found.ready)


def test_a_worker_builds_it_and_drops_it(model: EmbeddingModel, worker: Worker) -> None:
    with pytest.raises(CommandError, match="have no index"):
        call_command("index_embeddings", "--drop", stdout=io.StringIO())
    output = io.StringIO()
    call_command("index_embeddings", "--kind", "binary", "--m", "8", "--wait", stdout=output)
    job = Job.objects.get()
    assert (job.state, job.done, job.total, job.error) == ("done", 200, 200, "")
    assert kind_of(model) == ("binary", 8, 64, True)
    assert "200 embeddings indexed (binary)" in output.getvalue()
    call_command("index_embeddings", "--drop", "--wait", stdout=output)
    assert "The index was dropped." in output.getvalue()
    assert vector_index(model) is None


def test_doing_it_again_changes_nothing_and_other_parameters_replace_it(
    model: EmbeddingModel,
) -> None:
    # What a crash left is made anew.
    invalid_index(model)
    assert kind_of(model) == ("halfvec", 16, 64, False)
    finish(index_job_create())
    assert kind_of(model) == ("halfvec", 16, 64, True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)::oid", [f"{partition_name(model)}_hnsw"])
        before = cursor.fetchone()
        assert finish(index_job_create()).state == "done"
        cursor.execute("SELECT to_regclass(%s)::oid", [f"{partition_name(model)}_hnsw"])
        assert cursor.fetchone() == before
    assert finish(index_job_create(kind="binary", m=4)).state == "done"
    assert kind_of(model) == ("binary", 4, 64, True)


def test_a_build_that_goes_on_elsewhere_is_waited_for(model: EmbeddingModel) -> None:
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [lock_key("vector_index", model.pk)])
        job = index_job_create()
        assert job_slice_run(job_id=job.pk) is Slice.MORE
        assert kind_of(model) is None
    finally:
        other.close()
    assert finish(job).state == "done"
    assert kind_of(model) == ("halfvec", 16, 64, True)


def test_a_canceled_job_ends_its_build(
    model: EmbeddingModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.search.index_build.WATCH_SECONDS", 0.01)
    with writing(model):
        job = index_job_create()
        assert job_slice_run(job_id=job.pk) is Slice.MORE
        wait_for(lambda: kind_of(model) == ("halfvec", 16, 64, False), what="the build")
        assert job_cancel(job=job)
        wait_for(lambda: not running("CREATE INDEX CONCURRENTLY"), what="the end of the build")
        # What drops the rest waits for the writer too, and isn't canceled with the build.
        wait_for(lambda: running("DROP INDEX CONCURRENTLY"), what="the rest to be dropped")
        assert all(running("DROP INDEX CONCURRENTLY") for _ in range(50))
    wait_for(lambda: vector_index(model) is None, what="what is left to be dropped")
    assert not job.item_errors.exists()
    job.refresh_from_db()
    assert job_retry(job=job)
    assert finish(job).state == "done"
    assert kind_of(model) == ("halfvec", 16, 64, True)


def running(statement: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE %s",
            [f"{statement}%"],
        )
        return cursor.fetchone()[0] > 0


def test_what_the_database_refuses_fails_the_job_with_its_words(model: EmbeddingModel) -> None:
    job = index_job_create(memory=2**40)
    assert finish(job).state == "failed"
    assert "maintenance_work_mem" in job.error
    assert job_retry(job=job)
    job.params["memory"] = 64
    job.save(update_fields=["params"])
    assert finish(job).state == "done"
    assert not job.item_errors.exists()


def test_one_job_at_a_time_is_at_an_index(model: EmbeddingModel) -> None:
    job = index_job_create()
    assert index_job_create() == job
    with pytest.raises(IndexRefused, match=f"Job {job.pk} is working on the index"):
        index_job_create(m=8)
    finish(job)
    assert index_drop_job_create().pk != job.pk


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"m": 1}, "an m from 2 to 100"),
        ({"ef_construction": 31}, "at least twice m"),
        ({"memory": 0}, "give at least 1"),
        ({"model_name": "none"}, "none has no embeddings yet"),
    ],
)
def test_what_cannot_be_made_is_refused(
    model: EmbeddingModel, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(IndexRefused, match=says):
        index_job_create(**options)
    assert not Job.objects.exists()
