"""Runs on the toy release: exact scores, best possible re-ranks, publishing, deleting."""

import pytest
from django.core.exceptions import ValidationError

from core.errors import Conflict
from evaluation.runs.models import Run, RunScores, Submission
from evaluation.runs.services import (
    run_card_update,
    run_delete,
    run_finish,
    run_publish,
    run_score,
    run_store,
    run_unpublish,
)
from evaluation.runs.store import load_run
from tests.evaluation.runs import rankings, scored_run, stored_run
from tests.releases.snapshots import pair, query
from tests.releases.toy_release import toy_release

# Hits: query 1 at ranks 2 and 3 of R = 2, query 2 nowhere, query 3 at rank 1 of R = 3.
ORDERS = {1: [2, 1, 4], 2: [5, 6], 3: [3, 4, 1, 2], 4: [1]}


pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def release(world):
    return toy_release()


def scores(run: Run) -> RunScores:
    return RunScores.objects.get(run=run, release=run.release)


def test_scores_of_a_run_exactly(release):
    run = scored_run(release, ORDERS)
    got = scores(run)
    # Query 4 has no relevant image.
    assert got.query_ids == [1, 2, 3]
    assert got.measures["AP@50"] == pytest.approx([(1 / 2 + 2 / 3) / 2, 0, 1 / 3])
    assert got.measures["RR@50"] == [0.5, 0, 1]
    assert got.measures["P@1"] == [0, 0, 1]
    assert got.measures["P@5"] == pytest.approx([2 / 5, 0, 1 / 5])
    assert got.measures["R@50"] == pytest.approx([1, 0, 1 / 3])
    # Image 6 of query 2, images 1 and 2 of query 3 are unjudged.
    assert got.measures["Judged@1"] == [1, 1, 1]
    assert run.ready
    assert not run.published
    assert (run.val_queries, run.test_queries, run.rows, run.depth) == (1, 3, 10, 4)


def test_the_best_possible_reranks_come_with_a_first_stage(release):
    run = scored_run(release, ORDERS)
    bests = list(run.second_stages.order_by("rerank_depth"))
    assert [(best.kind, best.rerank_depth) for best in bests] == [("best", 50), ("best", 100)]
    best = bests[0]
    assert load_run(best.path)[1].image_ids.tolist() == [1, 4, 2]
    assert load_run(best.path)[3].image_ids.tolist() == [3, 4, 1, 2]
    assert scores(best).measures["AP@50"] == pytest.approx([1, 0, 1 / 3])
    assert best.ready
    assert not best.published


def test_doing_it_again_changes_nothing(release):
    run = scored_run(release, ORDERS)
    before = [(one.pk, one.ready_at, one.sha256) for one in Run.objects.all()]
    run_finish(run=run)
    assert [(one.pk, one.ready_at, one.sha256) for one in Run.objects.all()] == before
    assert RunScores.objects.count() == 3


def test_reranking_is_scored_within_the_fixed_lists(release):
    # Query 3 isn't fit, image 6 is the first of query 2's list that isn't relevant there, and
    # image 3 isn't in it.
    run = scored_run(release, {1: [1, 4, 2, 3], 2: [3, 6, 2], 3: [3]}, task="rerank")
    got = scores(run)
    assert got.query_ids == [1, 2]
    assert got.measures["AP@50"] == pytest.approx([1, 1 / 2])
    assert not run.second_stages.exists()


def test_a_run_is_scored_on_another_version_too(release):
    newer = toy_release(
        version=2,
        queries=[query(1, split="val"), query(9)],
        pairs=[pair(1, 2, True), pair(9, 5, True)],
        fixed=[],
    )
    run = scored_run(release, ORDERS)
    got = run_score(run=run, release=newer)
    assert (got.query_ids, got.measures["AP@50"]) == ([1, 9], [1, 0])
    assert scores(run).query_ids == [1, 2, 3]
    best = run.second_stages.get(rerank_depth=50)
    assert run_score(run=best, release=newer).measures["AP@50"] == [1, 0]


def test_a_scored_ranking_never_changes(release):
    run = scored_run(release, ORDERS)
    with pytest.raises(Conflict, match="doesn't change any more"):
        run_store(run=run, rankings=rankings({1: [1]}))
    assert load_run(run.path)[1].image_ids.tolist() == [2, 1, 4]


def test_publishing_takes_the_best_reranks_along(release, world):
    run = stored_run(release, ORDERS, owner=world.person("researcher"))
    with pytest.raises(Conflict, match="isn't scored yet"):
        run_publish(run=run)
    run_finish(run=run)
    published = run_publish(run=run)
    assert published.published
    assert Run.objects.filter(published_at=published.published_at).count() == 3
    assert run_publish(run=run).published_at == published.published_at
    with pytest.raises(Conflict, match="can't be deleted"):
        run_delete(run=run)
    run_unpublish(run=run)
    assert not Run.objects.filter(published_at__isnull=False).exists()


def test_deleting_removes_files_and_scores_but_no_submission(
    release, world, django_capture_on_commit_callbacks
):
    run = scored_run(release, ORDERS, owner=world.person("researcher"))
    Submission.objects.create(
        person=world.person("researcher"), release=release, run=run, test_split=True
    )
    files = [one.path for one in Run.objects.all()]
    assert len(files) == 3
    with django_capture_on_commit_callbacks(execute=True):
        run_delete(run=run)
        # Not before it is committed.
        assert all(path.exists() for path in files)
    assert not any(path.exists() for path in files)
    assert not Run.objects.exists()
    assert not RunScores.objects.exists()
    assert Submission.objects.get().run is None


def test_a_first_stage_of_somebody_elses_run_stays(release):
    run = scored_run(release, ORDERS)
    Run.objects.create(
        release=release, kind="rerank_multimodal", name="second", first_stage=run, rerank_depth=50
    )
    with pytest.raises(Conflict, match="“second” re-ranks this one"):
        run_delete(run=run)
    assert run.second_stages.count() == 3
    # Nor is a private first stage named by a public second one.
    second = scored_run(
        release, ORDERS, kind="rerank_embedding", first_stage=run, rerank_depth=2, name="third"
    )
    for one in (second, *run.second_stages.filter(kind="best")):
        with pytest.raises(Conflict, match="“toy run”, which is private; publish that first"):
            run_publish(run=one)
    run_publish(run=run)
    assert run_publish(run=second).published
    with pytest.raises(Conflict, match="“third” re-ranks this one"):
        run_unpublish(run=run)


def test_a_card_changes_and_nothing_else(release):
    run = scored_run(release, ORDERS)
    changed = run_card_update(run=run, name=" CLIP, large ", parameters=428.0, open_weights=True)
    assert (changed.name, changed.parameters, changed.open_weights) == ("CLIP, large", 428.0, True)
    for wrong in ({"parameters": -1.0}, {"name": "  "}, {"link": "javascript:alert(1)"}):
        with pytest.raises(ValidationError) as caught:
            run_card_update(run=run, **wrong)
        assert list(caught.value.message_dict) == list(wrong)
    for text in ("two\nlines", "\x1b[31mred", "CLIP\u200b", "\u202egnorw"):
        for field in ("name", "training_data"):
            with pytest.raises(ValidationError, match="characters that can be printed"):
                run_card_update(run=run, **{field: text})
    with pytest.raises(TypeError, match="sha256"):
        run_card_update(run=run, sha256="0" * 64)
