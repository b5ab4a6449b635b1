"""Two-stage runs by an embedding model: the same as brute force, resumable, of both tasks."""

import time

import numpy as np
import pytest
from django.core.exceptions import ValidationError

from core.jobs.models import Job
from core.jobs.services import Slice, job_cancel, job_slice_run
from evaluation.reranking.multimodal.answers import (
    Question,
    SentImage,
    store_answers,
    stored_answers,
)
from evaluation.reranking.multimodal.prompt import Reply, Score, Usage
from evaluation.reranking.services import rerank_resume, rerank_step
from evaluation.runs.models import RunScores
from evaluation.runs.store import load_run
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding
from retrieval.embedding.services import embedding_job_create
from retrieval.embedding.text_vectors import text_vector
from retrieval.images.files import ImageRef
from tests.evaluation.rerank_toy import (
    FIRST,
    TEXTS,
    begun,
    first_stage,
    order_of,
    small_release,
    toy_image,
    worked,
)
from tests.evaluation.runs import scored_run
from tests.releases.snapshots import query
from tests.releases.toy_release import ready_release, toy_release
from tests.retrieval.making import embed_rows
from tests.toy_model import toy_model as toy_spec

#: Under the toy model texts of several words mean (1, 0): a greater number is a better image.
VECTORS = {number: [number, 7 - number] for number in range(1, 7)}


@pytest.fixture
def model(images, var_dir):
    made = embedding_model_get_or_create(name=toy_spec(), dimension=2)
    embed_rows(made, VECTORS)
    return made


def test_the_first_images_are_ordered_anew_and_the_others_stay(model):
    release = small_release()
    run = begun(release, first_stage(release), 3, embedding_model=model)
    job = worked(run)
    assert (job.state, job.error, job.done, job.total) == ("done", "", 9, 9)
    assert (run.kind, run.rerank_depth) == ("rerank_embedding", 3)
    assert order_of(run) == {1: [3, 2, 1, 4, 5, 6], 2: [6, 5, 4, 3, 2, 1], 3: [6, 4, 2, 1, 3]}
    ranking = load_run(run.path)[1]
    cosines = [number / np.hypot(number, 7 - number) for number in (3, 2, 1)]
    assert ranking.scores[:3] == pytest.approx(cosines, abs=1e-3)
    assert ranking.scores[3:].tolist() == [-2, -3, -4]
    assert RunScores.objects.get(run=run).measures["AP@50"]


def test_images_without_an_embedding_keep_their_order_behind(model):
    Embedding.objects.filter(model=model, image_id__in=[2, 4]).delete()
    release = small_release()
    run = begun(release, first_stage(release), 4, embedding_model=model)
    job = worked(run)
    assert order_of(run) == {1: [3, 1, 2, 4, 5, 6], 2: [6, 5, 3, 4, 2, 1], 3: [6, 1, 2, 4, 3]}
    # Images 2 and 4 of query 1, 4 of query 2, 2 and 4 of query 3.
    assert job.result == run.endpoint == {"unscored": 5}


def test_the_fixed_lists_are_the_first_stage_of_the_reranking_task(model):
    release = toy_release()
    run = begun(release, None, 3, embedding_model=model)
    job = worked(run)
    assert (run.task, run.first_stage, job.total) == ("rerank", None, 6)
    # Queries 3 and 4 of the toy are not fit.
    assert order_of(run) == {1: [3, 2, 1, 4], 2: [6, 5, 2, 1]}
    assert RunScores.objects.get(run=run).query_ids == [1, 2]


def test_a_real_model_gives_what_brute_force_gives(db, var_dir, tiny_model):
    for number in range(1, 7):
        toy_image(number)
    embedding_job = embedding_job_create(model_name=tiny_model)
    while job_slice_run(job_id=embedding_job.pk) is Slice.MORE:
        pass
    release = small_release()
    made = embedding_model_get_or_create(name=tiny_model)
    run = begun(release, first_stage(release), 5, embedding_model=made)
    assert worked(run).state == "done"
    vectors = {
        one.image_id: np.array(one.vector, dtype=np.float32)
        for one in Embedding.objects.filter(model=made)
    }
    assert len(vectors) == 6
    for query_id, ids in FIRST.items():
        text = np.array(text_vector(made, TEXTS[query_id]), dtype=np.float32)
        cosines = {one: float(vectors[one] @ text) for one in ids[:5]}
        ranking = load_run(run.path)[query_id]
        assert ranking.image_ids.tolist() == [
            *sorted(cosines, key=lambda one: -cosines[one]), *ids[5:]
        ]  # fmt: skip
        top = [cosines[one] for one in ranking.image_ids[:5].tolist()]
        assert ranking.scores[:5] == pytest.approx(top, abs=1e-5)


def test_a_slice_goes_on_where_the_last_one_ended(model):
    release = small_release()
    run = begun(release, first_stage(release), 3, embedding_model=model)
    Job.objects.filter(pk=run.job.pk).update(state=Job.State.RUNNING)
    past, counts = time.monotonic() - 1, []
    for _ in range(3):
        job = Job.objects.get(pk=run.job.pk)
        finished = rerank_step(job, past)
        counts.append((finished, job.done))
    assert counts == [(False, 3), (False, 6), (True, 9)]
    # Done again, it changes nothing.
    job = Job.objects.get(pk=run.job.pk)
    assert rerank_step(job, past)
    assert job.done == 9
    run.refresh_from_db()
    assert run.ready
    assert len(order_of(run)) == 3


def test_a_run_that_was_cancelled_or_failed_is_taken_up(model):
    release = small_release()
    run = begun(release, first_stage(release), 3, embedding_model=model)
    assert job_cancel(job=run.job)
    assert job_slice_run(job_id=run.job.pk) is Slice.STALE
    rerank_resume(run=run)
    type(model).objects.filter(pk=model.pk).update(name="no-such/model")
    job = worked(run)
    assert job.state == "failed"
    assert "no-such" in job.error
    type(model).objects.filter(pk=model.pk).update(name=model.name)
    rerank_resume(run=run)
    assert worked(run).state == "done"
    # A deleted run ends its job.
    gone = begun(release, first_stage(release), 2, embedding_model=model)
    job = gone.job
    gone.delete()
    assert job_slice_run(job_id=job.pk) is Slice.FAILED
    job.refresh_from_db()
    assert job.error == "The run was deleted."


def test_impossible_choices_are_named(model):
    release = small_release()
    first, own = first_stage(release), {"embedding_model": model}
    away = {"url": "http://127.0.0.1:9/v1"}
    for values, field in (
        ({**own, "depth": 0}, "depth"),
        ({**own, "depth": 1001}, "depth"),
        ({**own, "name": "a\nb"}, "name"),
        ({}, "kind"),
        ({**own, **away}, "kind"),
        ({"url": "not an address"}, "endpoint"),
        ({**away, "price_in": 1.0}, "price_out"),
        ({**away, "price_in": -1.0, "price_out": 1.0}, "price_in"),
        ({**away, "max_cost": 1.0}, "max_cost"),
        ({**away, "max_cost": 0.0, "price_in": 1.0, "price_out": 1.0}, "max_cost"),
        ({**away, "rpm": -1}, "rpm"),
    ):
        with pytest.raises(ValidationError) as raised:
            begun(release, first, **{"depth": 3, **values})
        assert list(raised.value.message_dict) == [field], values


def test_only_a_scored_full_ranking_of_the_release_is_a_first_stage(model):
    release = small_release()
    first = first_stage(release)
    other = ready_release(name="Other", queries=[query(1)])
    with pytest.raises(ValidationError, match="scored run of this release"):
        begun(other, first, 3, embedding_model=model)
    best = first.second_stages.first()
    assert best.kind == "best"
    with pytest.raises(ValidationError, match="scored run of this release"):
        begun(release, best, 3, embedding_model=model)
    type(first).objects.filter(pk=first.pk).update(ready_at=None)
    first.refresh_from_db()
    with pytest.raises(ValidationError, match="scored run of this release"):
        begun(release, first, 3, embedding_model=model)
    with pytest.raises(ValidationError, match="no fixed lists"):
        begun(release, None, 3, embedding_model=model)
    absent = ready_release(name="Absent", queries=[query(1)], corpus_images=0)
    with pytest.raises(ValidationError, match="images of this release are not here"):
        begun(absent, scored_run(absent, {1: [1, 2]}), 2, embedding_model=model)


def test_of_two_answers_to_one_question_the_first_stays(db, var_dir):
    shown = toy_image(1)
    question = Question(1, 1, "Does it?", SentImage(ImageRef.of(shown), 40, 30, 100))
    where = {"endpoint": "http://a/v1", "model": "m"}
    for score in (0.25, 0.75):
        reply = Reply(Score(yes=None, no=-1.0, score=score), Usage(1, 10, 1), usage_known=True)
        store_answers(**where, replies=[(question, reply)])
    kept = stored_answers(**where, questions=[question])
    assert kept[1, 1].score == 0.25
    assert not stored_answers(endpoint="http://b/v1", model="m", questions=[question])
    assert not stored_answers(endpoint="http://a/v1", model="other", questions=[question])
