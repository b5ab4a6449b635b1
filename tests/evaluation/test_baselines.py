"""Baselines: exact, made once, slice by slice, on the corpus that the release ranks."""

import time

import pytest
from django.core.management import call_command

from core.jobs.models import Job
from core.jobs.services import Slice, job_slice_run
from evaluation.runs.baselines import baselines_begin, baselines_job, baselines_step
from evaluation.runs.models import Run, RunScores
from evaluation.runs.store import load_run
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.encoding.encoders import load_encoder
from retrieval.flags.services import image_withdraw
from tests.releases.snapshots import query
from tests.releases.toy_release import toy_release
from tests.retrieval.making import embed_rows, image_row
from tests.toy_model import toy_model as toy_spec

#: Under the toy model texts of several words mean (1, 0), and of one word (0, 1).
VECTORS = {number: [7 - number, number] for number in range(1, 7)}
QUERIES = [
    query(1, "a stork on a nest", split="val"),
    query(2, "fox"),
    query(3, "a dead bird"),
    query(4, "nest"),
]


@pytest.fixture
def model(images, var_dir):
    """A real model of two dimensions, under which the six images are embedded."""
    made = embedding_model_get_or_create(name=toy_spec(), dimension=2)
    embed_rows(made, VECTORS)
    return made


@pytest.fixture
def release(model):
    return toy_release(queries=QUERIES)


def make(release) -> Job:
    """Have the baselines made to the end."""
    job = baselines_begin(release=release)
    while job_slice_run(job_id=job.pk) is Slice.MORE:
        pass
    job.refresh_from_db()
    return job


def made(**values) -> Run:
    return Run.objects.get(**values)


def ap(run: Run) -> list[float]:
    return RunScores.objects.get(run=run, release=run.release).measures["AP@50"]


def test_everything_that_comes_for_free(release, model):
    job = make(release)
    assert (job.state, job.error) == ("done", "")
    # Two random orders, four queries of the whole corpus and two that are fit for re-ranking.
    assert (job.done, job.failed, job.total) == (8, 0, 8)
    runs = [(run.kind, run.task, run.rerank_depth) for run in Run.objects.order_by("pk")]
    assert runs == [
        ("random", "full", None),
        ("random", "rerank", None),
        ("model", "full", None),
        ("best", "full", 50),
        ("best", "full", 100),
        ("model", "rerank", None),
    ]
    assert all(run.published and run.ready and run.owner is None for run in Run.objects.all())
    full = made(kind="model", task="full")
    # Of a model in files, the folder's name, and no place of this machine.
    assert (full.name, full.open_weights) == ("toy-model", None)
    assert full.parameters == load_encoder(model.name).size.parameters / 1e6 > 0
    stored = load_run(full.path)
    assert stored[1].image_ids.tolist() == [1, 2, 3, 4, 5, 6]
    assert stored[2].image_ids.tolist() == [6, 5, 4, 3, 2, 1]
    # Relevant: 1, 4 of query 1 at ranks 1, 4; 2 of 2 at 5; 3, 5, 6 of 3 at 3, 5, 6.
    assert ap(full) == pytest.approx([(1 + 2 / 4) / 2, 1 / 5, (1 / 3 + 2 / 5 + 3 / 6) / 3])
    assert ap(made(kind="best", rerank_depth=50)) == [1, 1, 1]
    # Within the fixed lists the same model orders them.
    run = made(kind="model", task="rerank")
    stored = load_run(run.path)
    assert {query_id: one.image_ids.tolist() for query_id, one in stored.items()} == {
        1: [1, 2, 3, 4],
        2: [6, 5, 2, 1],
    }
    assert ap(run) == pytest.approx([(1 + 2 / 4) / 2, 1 / 3])
    # One relevant image among six, at each rank with the same probability.
    run = made(kind="random", task="full")
    assert ap(run)[1] == pytest.approx(sum(1 / rank for rank in range(1, 7)) / 6)
    assert (run.rows, run.sha256, run.path.exists()) == (0, "", False)
    # Made again, nothing is new but what is missing.
    full.second_stages.filter(rerank_depth=100).delete()
    before = list(Run.objects.values_list("pk", "sha256", "ready_at").order_by("pk"))
    again = make(release)
    assert (again.state, again.done) == ("done", 8)
    *same, _new = Run.objects.values_list("pk", "sha256", "ready_at").order_by("pk")
    assert same == before


def test_one_job_at_a_time(release):
    first = baselines_begin(release=release)
    assert baselines_begin(release=release).pk == first.pk
    Job.objects.filter(pk=first.pk).update(state=Job.State.FAILED, error="a full disk")
    again = baselines_begin(release=release)
    assert (again.pk, again.state) == (first.pk, "queued")
    assert baselines_job(toy_release("Other")) is None


def test_a_slice_cut_short_is_gone_on_with(release):
    """Each slice ranks one query, since its deadline is past when it begins."""
    job = baselines_begin(release=release)
    Job.objects.filter(pk=job.pk).update(state=Job.State.RUNNING)
    seen = []
    for _ in range(20):
        # Nothing is carried over but what a killed worker would have left.
        job = Job.objects.get(pk=job.pk)
        if baselines_step(job, time.monotonic() - 1):
            break
        seen.append(Job.objects.get(pk=job.pk).done)
    assert seen == [3, 4, 5, 7]
    assert Job.objects.get(pk=job.pk).done == 8
    run = made(kind="model", task="full")
    assert load_run(run.path)[4].image_ids.tolist() == [6, 5, 4, 3, 2, 1]
    # No half-made ranking is left behind.
    assert sorted(path.name for path in run.path.parent.iterdir()) == sorted(
        f"{one.pk}.npz" for one in Run.objects.exclude(kind="random")
    )


def test_through_the_matrix_a_slice_ranks_many_queries(release, model):
    call_command("pack_embeddings", model=model.name, verbosity=0)
    job = baselines_begin(release=release)
    Job.objects.filter(pk=job.pk).update(state=Job.State.RUNNING)
    job.refresh_from_db()
    # Its deadline is past when it begins, and each task's queries are one batch all the same.
    assert baselines_step(job, time.monotonic() - 1)
    stored = load_run(made(kind="model", task="full").path)
    assert {query_id: one.image_ids.tolist() for query_id, one in stored.items()} == {
        1: [1, 2, 3, 4, 5, 6],
        2: [6, 5, 4, 3, 2, 1],
        3: [1, 2, 3, 4, 5, 6],
        4: [6, 5, 4, 3, 2, 1],
    }
    assert [
        one.image_ids.tolist() for one in load_run(made(kind="model", task="rerank").path).values()
    ] == [
        [1, 2, 3, 4],
        [6, 5, 2, 1],
    ]


def test_images_withdrawn_since_count_and_later_or_withdrawn_ones_do_not(model, reviewer, images):
    image_withdraw(image=images[1], by=reviewer)
    release = toy_release(queries=QUERIES)
    image_withdraw(image=images[0], by=reviewer)
    image_row(7)
    embed_rows(model, {7: [1, 0]})
    make(release)
    run = made(kind="model", task="full")
    assert load_run(run.path)[1].image_ids.tolist() == [1, 3, 4, 5, 6]


def test_a_model_that_has_not_seen_the_corpus_gets_no_run_yet(model):
    image_row(7)
    release = toy_release(queries=QUERIES, corpus_images=7)
    job = make(release)
    assert not Run.objects.filter(kind="model").exists()
    error = job.item_errors.get()
    assert error.item == model.name
    assert "No embedding under it: 1 image of the corpus" in error.message
    embed_rows(model, {7: [1, 0]})
    make(release)
    assert Run.objects.filter(kind="model").count() == 2


def test_a_model_that_cannot_be_loaded_is_named_and_the_rest_goes_on(images, var_dir):
    lost = embedding_model_get_or_create(name="/nowhere/at-all", dimension=2)
    model = embedding_model_get_or_create(name=toy_spec(), dimension=2)
    for one in (lost, model):
        embed_rows(one, VECTORS)
    release = toy_release(queries=QUERIES)
    job = baselines_begin(release=release)
    Job.objects.filter(pk=job.pk).update(state=Job.State.RUNNING)
    # In many slices, each of which begins with the lost model's turn.
    while not baselines_step(Job.objects.get(pk=job.pk), time.monotonic() - 1):
        pass
    job.refresh_from_db()
    assert (job.done, job.failed, job.total) == (8, 6, 14)
    assert job.item_errors.get().item == "/nowhere/at-all"
    runs = Run.objects.filter(kind="model")
    assert list(runs.values_list("embedding_model", flat=True)) == [model.pk, model.pk]


def test_an_imported_benchmark_without_its_images_has_no_corpus_to_rank(model):
    release = toy_release(origin="imported", corpus_images=0)
    make(release)
    assert [(run.kind, run.task) for run in Run.objects.all()] == [("random", "rerank")]
