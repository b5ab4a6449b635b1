"""Submitted runs: what is taken, what their job refuses with which line, and how often."""

import gzip
import io
import json
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from core.errors import Conflict, LimitReached
from core.jobs.services import Slice, job_cancel, job_slice_run
from evaluation.leaderboard.selectors import board_runs
from evaluation.runs.models import Run, RunScores, Submission
from evaluation.runs.selectors import may_score_again
from evaluation.runs.services import run_delete, run_score_begin
from evaluation.runs.store import load_run
from evaluation.runs.submissions import (
    WAITING_AT_MOST,
    RunRefused,
    allowance_of,
    run_submit,
)
from retrieval.flags.services import image_withdraw
from tests.evaluation.runs import trec
from tests.releases.toy_release import toy_release
from tests.retrieval.making import image_row
from tests.threads import at_once

ORDERS = {1: [2, 1, 4], 2: [2, 5], 3: [3]}


@pytest.fixture
def release(images, var_dir):
    return toy_release()


def submit(release, owner, content: bytes, name: str = "run.txt", **values) -> Run:
    return run_submit(
        release=release,
        owner=owner,
        file=io.BytesIO(content),
        file_name=name,
        **{"card": {"name": "my run"}, **values},
    )


def read(release, owner, content: bytes, **values) -> Run:
    """A submitted run after its job."""
    run = submit(release, owner, content, **values)
    job_slice_run(job_id=run.job_id)
    return Run.objects.get(pk=run.pk)


def refused(release, owner, content: bytes, **values) -> list[tuple[int, str, str]]:
    """The errors of a file that its job refuses, of which nothing but they is kept."""
    run = read(release, owner, content, **values)
    assert (run.job.state, run.ready, run.rows, run.sha256) == ("failed", False, 0, "")
    assert not run.upload.exists()
    assert not run.path.exists()
    assert not Submission.objects.filter(run=run).exists()
    return [(error["line"], error["field"], error["message"]) for error in run.refused]


def test_a_run_is_stored_private_and_scored_by_its_job(
    release, researcher, var_dir, django_capture_on_commit_callbacks
):
    run = submit(release, researcher, trec(ORDERS), card={"name": " CLIP ", "parameters": 86.0})
    assert (run.name, run.parameters, run.owner, run.published) == ("CLIP", 86.0, researcher, False)
    # The request reads nothing of the file.
    assert (run.ready, run.rows, run.upload.read_bytes()) == (False, 0, trec(ORDERS))
    assert job_slice_run(job_id=run.job_id) is Slice.FINISHED
    run.refresh_from_db()
    assert (run.val_queries, run.test_queries, run.rows, run.depth) == (1, 2, 6, 3)
    assert load_run(run.path)[1].image_ids.tolist() == [2, 1, 4]
    assert not run.upload.exists()
    assert (run.ready, run.published, run.job.done, run.job.total) == (True, False, 3, 3)
    scores = RunScores.objects.get(run=run)
    assert scores.measures["AP@50"] == pytest.approx([(1 / 2 + 2 / 3) / 2, 1, 1 / 3])
    run_delete(run=run)
    # Deleted while it waits: its file goes.
    run = submit(release, researcher, trec(ORDERS))
    with django_capture_on_commit_callbacks(execute=True):
        run_delete(run=run)
    assert not run.upload.exists()
    assert job_slice_run(job_id=run.job_id) is Slice.STALE
    assert not Run.objects.exists()


def test_a_compressed_run_of_another_format_is_published_once_it_is_scored(release, researcher):
    rows = [
        {"query_id": query, "image_id": image, "score": 9 - rank}
        for query in ORDERS
        for rank, image in enumerate(ORDERS[query])
    ]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    run = submit(release, researcher, gzip.compress(content), publish=True)
    assert not Run.objects.filter(published_at__isnull=False).exists()
    job_slice_run(job_id=run.job_id)
    assert Run.objects.filter(published_at__isnull=False).count() == 3
    stored = load_run(run.path)
    assert {query: one.image_ids.tolist() for query, one in stored.items()} == ORDERS


def test_an_unknown_image_and_a_query_of_the_other_split_are_errors(release, researcher):
    [error] = refused(release, researcher, trec({1: [2, 1]}) + b"1 Q0 77 1 0.5 x\n")
    assert error == (3, "image_id", "there is no image 77")
    errors = refused(release, researcher, trec({1: [1], 2: [2], 3: [3]}), split="val")
    assert [(line, name) for line, name, _ in errors] == [(2, "query_id"), (3, "query_id")]
    assert "of the split test, not val" in errors[0][2]
    assert read(release, researcher, trec({1: [1]}), split="val").val_queries == 1


def test_reranking_takes_the_fixed_lists_alone(release, researcher):
    errors = refused(release, researcher, trec({1: [2, 6], 3: [3], 2: [2]}), task="rerank")
    assert errors == [
        (2, "image_id", "image 6 is not in the fixed list of query 1"),
        (3, "query_id", "query 3 has no fixed list that is fit for re-ranking"),
    ]
    with pytest.raises(Conflict, match="has no fixed lists"):
        submit(toy_release("Unlisted", fixed=[]), researcher, trec({1: [1]}), task="rerank")
    run = read(release, researcher, trec({1: [4, 1], 2: [2]}), task="rerank")
    # Within the lists 2 and 1 are relevant; 3 and 5, 6, 1 are left out.
    assert RunScores.objects.get(run=run).measures["AP@50"] == [1, 1]


def test_the_corpus_is_that_of_the_release(release, researcher, reviewer, images):
    image_withdraw(image=images[0], by=reviewer)
    image_row(7)
    errors = refused(release, researcher, trec({1: [1, 7]}))
    # Withdrawn since, and so still in it; imported since, and so not.
    assert errors == [(2, "image_id", "there is no image 7")]
    newer = toy_release(version=2)
    assert refused(newer, researcher, trec({1: [1, 7]})) == [(1, "image_id", "there is no image 1")]


def test_without_the_images_of_an_imported_benchmark_any_id_passes(researcher, var_dir):
    release = toy_release(origin="imported", corpus_images=0)
    assert read(release, researcher, trec({1: [10**12, 1]})).rows == 2


def test_files_may_not_be_too_large(release, researcher, settings):
    content = trec(ORDERS)
    settings.RUN_MAX_BYTES = len(content) - 1
    with pytest.raises(RunRefused, match="bytes; "):
        submit(release, researcher, content)
    assert not Run.objects.exists()
    settings.RUN_MAX_BYTES = len(content)
    # Compressed it is small, and what comes out of it is counted, too.
    settings.RUN_MAX_TEXT_BYTES = len(content) - 1
    assert "bytes of text" in refused(release, researcher, gzip.compress(content))[0][2]
    settings.RUN_MAX_TEXT_BYTES = len(content)
    assert read(release, researcher, content).rows == 6


def test_a_run_whose_worker_died_while_reading_is_read_again(release, researcher):
    run = submit(release, researcher, trec(ORDERS))
    dying = patch("evaluation.runs.submissions.run_store", side_effect=SystemExit)
    with dying, pytest.raises(SystemExit):
        job_slice_run(job_id=run.job_id)
    assert run.upload.exists()
    job_slice_run(job_id=run.job_id)
    run.refresh_from_db()
    assert (run.ready, run.rows) == (True, 6)
    # Canceled, it is begun again with its file; without the file it fails in words.
    run = submit(release, researcher, trec({1: [1]}), split="val")
    job_cancel(job=run.job)
    run.job.refresh_from_db()
    assert may_score_again(run)
    job_slice_run(job_id=run_score_begin(run=run, created_by=researcher).pk)
    assert Run.objects.get(pk=run.pk).ready
    run = submit(release, researcher, trec(ORDERS))
    run.upload.unlink()
    assert job_slice_run(job_id=run.job_id) is Slice.FAILED
    assert "is missing; submit it again" in Run.objects.get(pk=run.pk).job.error


def test_refused_runs_are_deleted_and_on_no_board(release, researcher):
    run = read(release, researcher, b"nonsense", publish=True)
    assert not run.published
    assert board_runs(release, "full", researcher).runs == {}
    run_delete(run=run)
    assert not Run.objects.exists()


def test_a_person_has_few_files_that_wait(release, researcher, settings):
    settings.TEST_SUBMISSIONS_PER_DAY = 100
    waiting = [submit(release, researcher, b"nonsense") for _ in range(WAITING_AT_MOST)]
    with pytest.raises(Conflict, match="wait to be read"):
        submit(release, researcher, trec(ORDERS))
    assert Run.objects.count() == WAITING_AT_MOST
    job_slice_run(job_id=waiting[0].job_id)
    submit(release, researcher, trec(ORDERS))


def test_what_cannot_be_stored_leaves_nothing(release, researcher, var_dir):
    with pytest.raises(ValidationError) as caught:
        submit(release, researcher, b"nonsense", card={"name": " ", "cost": -1})
    assert sorted(caught.value.message_dict) == ["cost", "name"]
    (var_dir / "runs").write_text("in the way")
    with pytest.raises(OSError, match="runs"):
        submit(release, researcher, trec(ORDERS))
    assert not Run.objects.exists()
    assert not Submission.objects.exists()


def test_the_limit_counts_a_persons_last_24_hours(release, researcher, reviewer, settings):
    settings.TEST_SUBMISSIONS_PER_DAY = 2
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    for hours in (0, 5):
        with patch.object(timezone, "now", return_value=noon + timedelta(hours=hours)):
            submit(release, researcher, trec({2: [2]}), split="test")
    with patch.object(timezone, "now", return_value=noon + timedelta(hours=13)):
        # Midnight is past, and gives nothing back.
        with pytest.raises(LimitReached, match="next is free at 2026-05-02 12:00 UTC"):
            submit(release, researcher, trec(ORDERS))
        assert allowance_of(reviewer).left == 2
        # The validation split isn't limited.
        submit(release, researcher, trec({1: [1]}), split="val")
    with patch.object(timezone, "now", return_value=noon + timedelta(hours=24)):
        assert (allowance_of(researcher).left, allowance_of(researcher).next_at) == (1, None)
        submit(release, researcher, trec({2: [2]}))
        allowance = allowance_of(researcher)
    assert (allowance.left, allowance.next_at) == (0, noon + timedelta(hours=29))


def test_deleted_runs_count_and_refused_ones_do_not(release, researcher, settings):
    settings.TEST_SUBMISSIONS_PER_DAY = 1
    refused(release, researcher, b"nonsense")
    # What holds no test query doesn't count either, whatever was said of it.
    read(release, researcher, trec({1: [1]}), split="all")
    assert allowance_of(researcher).left == 1
    run_delete(run=submit(release, researcher, trec({2: [2]})))
    with pytest.raises(LimitReached):
        submit(release, researcher, trec({2: [2]}))
    assert Submission.objects.get(test_split=True).run is None
    settings.TEST_SUBMISSIONS_PER_DAY = 0
    with pytest.raises(LimitReached, match="No submissions on the test split"):
        submit(release, researcher, trec({2: [2]}))


def test_two_at_the_same_moment_do_not_pass_the_limit(
    transactional_db, images, var_dir, researcher, settings
):
    settings.TEST_SUBMISSIONS_PER_DAY = 2
    release = toy_release()
    outcomes = at_once(*[lambda: submit(release, researcher, trec({2: [2]}))] * 6)
    assert sorted(type(one).__name__ for one in outcomes) == ["LimitReached"] * 4 + ["Run"] * 2
    assert Run.objects.count() == Submission.objects.count() == 2
    # What was refused after it had been kept left no file.
    assert len(list((var_dir / "runs").iterdir())) == 2
