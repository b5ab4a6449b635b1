"""Candidate lists that wait beside each other are ranked in one pass through the matrix."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from core.jobs.models import Job
from core.jobs.services import Slice, job_cancel, job_slice_run
from core.locks import lock_key, session_lock
from labeling.candidates.freezing import list_freeze
from labeling.candidates.models import Candidate, CandidateList
from labeling.candidates.selectors import list_verify
from labeling.candidates.services import list_refresh
from labeling.lifecycle.opening import queries_open
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from retrieval.embedding.models import Embedding
from tests.labeling.conftest import make_images, make_species, run_jobs


@pytest.fixture
def images(toy_model) -> list[Image]:
    """Eight images whose vectors are packed."""
    made = make_images(8)
    call_command("pack_embeddings", model=toy_model.name, verbosity=0)
    return made


def opened(admin: Any, *queries: Query) -> list[CandidateList]:
    """The lists that wait once the queries were opened together."""
    queries_open(pks=[query.pk for query in queries], by=admin)
    return lists(*queries)


def lists(*queries: Query) -> list[CandidateList]:
    """The present lists."""
    found = [query.lists.select_related("job").latest("pk") for query in queries]
    assert all(one.job is not None for one in found)
    return found


def do(one: CandidateList) -> Job:
    """A slice of the list's own job."""
    assert one.job_id is not None
    job_slice_run(job_id=one.job_id)
    return Job.objects.get(pk=one.job_id)


def ranked(one: CandidateList) -> list[int]:
    """The images' ids in order."""
    rows = Candidate.objects.filter(list=one).order_by("rank")
    return list(rows.values_list("image_id", flat=True))


def test_the_first_job_freezes_all_that_wait_and_theirs_end_with_the_same_counts(
    images, new_query, admin
):
    queries = [new_query(text) for text in ("toad", "a toad", "frog", "a frog", "newt")]
    waiting = opened(admin, *queries)
    first = do(waiting[0])
    frozen = lists(*queries)
    assert [one.ready for one in frozen] == [True] * 5
    assert len({one.frozen_at for one in frozen}) == 1
    # A word is across from what longer texts mean.
    assert ranked(frozen[0]) == ranked(frozen[1])[::-1] == [image.pk for image in images][::-1]
    assert all(list_verify(one) for one in frozen)
    assert all(Query.objects.get(pk=one.query_id).current_list == one for one in frozen)
    jobs = [first, *(do(one) for one in frozen[1:])]
    assert {(job.state, job.done, job.total) for job in jobs} == {("done", 8, 8)}
    assert [job.result for job in jobs] == [{"list": one.pk} for one in frozen]
    assert Candidate.objects.count() == 40


def test_a_list_with_a_species_filter_is_ranked_by_its_own_job(images, new_query, admin):
    toad = make_species("Bufo bufo")
    Image.objects.filter(pk__in=[images[2].pk, images[5].pk]).update(species=toad)
    queries = [new_query("a toad"), new_query("a toad of a kind", species=[toad])]
    waiting = opened(admin, *queries)
    do(waiting[0])
    assert [one.ready for one in lists(*queries)] == [True, False]
    do(waiting[1])
    assert ranked(waiting[1]) == [images[2].pk, images[5].pk]


def test_each_list_has_its_own_depth_and_deeper_ones_are_not_taken_along(
    images, new_query, admin, settings
):
    queries = [new_query(f"a toad of number {number}") for number in range(4)]
    for query, depth in zip(queries, (5, 2, 7, 2), strict=True):
        settings.CANDIDATE_DEPTH = depth
        queries_open(pks=[query.pk], by=admin)
    # Nor is what is no longer wanted.
    job_cancel(job=lists(queries[3])[0].job)
    do(lists(*queries)[0])
    first, second, third, canceled = lists(*queries)
    assert (first.size, second.size, third.ready, canceled.ready) == (5, 2, False, False)
    assert ranked(second) == ranked(first)[:2]
    assert (second.total, second.complete) == (8, False)


def test_a_refused_list_fails_its_own_job_and_no_other(images, new_query, admin):
    old, new = new_query("a toad"), new_query("a frog")
    opened(admin, old)
    run_jobs()
    [empty] = opened(admin, new)
    # So that the pass is one of the matrix, all of whose rows are gone.
    Embedding.objects.all().delete()
    list_refresh(query=old, by=admin)
    [refused] = lists(old)
    assert do(empty).state == "done"
    empty.refresh_from_db()
    assert (empty.ready, empty.size) == (True, 0)
    failed = do(refused)
    assert failed.state == "failed"
    assert "so the present list stays" in failed.error
    old.refresh_from_db()
    assert old.current_list is not None
    assert old.current_list.size == 8


@pytest.fixture
def ranking_elsewhere(toy_model) -> Iterator[None]:
    """Another session is at a pass for the model."""
    begun, over = threading.Event(), threading.Event()

    def hold(key: int) -> None:
        with session_lock(key):
            begun.set()
            over.wait()
        connection.close()

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(hold, lock_key("ranking", toy_model.pk))
        assert begun.wait(60)
        yield
        over.set()
        done.result()


def test_a_job_waits_for_another_workers_pass_no_longer_than_its_slice(
    images, new_query, admin, ranking_elsewhere, monkeypatch
):
    monkeypatch.setattr("core.jobs.services.SLICE_SECONDS", 0.1)
    [waiting] = opened(admin, new_query("a toad"))
    found = list_freeze(list_id=waiting.pk, job=waiting.job, deadline=time.monotonic())
    assert found is not None
    assert not found.ready
    assert waiting.job_id is not None
    assert job_slice_run(job_id=waiting.job_id) is Slice.MORE
    assert not Candidate.objects.exists()


def test_a_job_that_died_with_many_lists_tries_fewer(images, new_query, admin):
    queries = [new_query(f"a toad of number {number}") for number in range(3)]
    waiting = opened(admin, *queries)
    # 256 at once, then 64, 16, 4 and 1.
    Job.objects.filter(pk=waiting[0].job_id).update(attempts_without_progress=4)
    do(waiting[0])
    assert [one.ready for one in lists(*queries)] == [True, False, False]
