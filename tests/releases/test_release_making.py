"""Making a release while others work: two makers, killed workers, judgments that come meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection, connections

from core.errors import Conflict
from core.jobs.kinds import JobCanceled
from core.jobs.models import Job
from core.jobs.services import Slice, job_cancel, job_slice_run
from labeling.judging.models import Judgment
from labeling.queries.models import Query
from releases.making import services
from releases.making.progress import Step
from releases.models import Release
from releases.snapshot.snapshot import Snapshot
from tests.processes import wait_for
from tests.releases.toy import make_query
from tests.threads import waiting

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def labeled(query: Query, judge: Any, annotator: Any) -> Query:
    judge(query, 2, annotator, "relevant")
    return query


def elsewhere(work: Any) -> threading.Thread:
    """Do something on a connection of its own."""

    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


class Pause:
    """Reports that hold the making at a step until it may go on."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, steps: list[Step]) -> None:
        if any(step.title == self.title and step.state == "running" for step in steps):
            self.reached.set()
            assert self.go_on.wait(30)


@pytest.fixture
def paused(var_dir: Path, labeled: Query) -> Iterator[tuple[Release, Pause, threading.Thread]]:
    """A release whose maker waits in the middle of its snapshot, the judgments written."""
    release = services.release_claim(name="v1", created_by=None)
    pause = Pause("Queries")
    thread = elsewhere(lambda: services.release_make(release=Release(pk=release.pk), report=pause))
    assert pause.reached.wait(30)
    yield release, pause, thread
    pause.go_on.set()
    thread.join(30)


def test_the_snapshot_is_one_moment(
    paused: Any, labeled: Query, judge: Any, annotator: Any
) -> None:
    release, pause, thread = paused
    # The judgments were read before this; queries, images and corpus are read after it.
    labeled.text = "changed meanwhile"
    labeled.save()
    judge(labeled, 3, annotator, "relevant")
    make_query(99, "came meanwhile")
    Judgment.objects.filter(image_id=2).delete()
    pause.go_on.set()
    thread.join(30)
    release.refresh_from_db()
    snapshot = Snapshot(release.directory / "snapshot")
    assert [query.text for query in snapshot.queries.values()] == ["two storks on a nest "]
    assert [pair.image_id for pair in snapshot.pairs()] == [2]
    assert (release.positives, release.judgments, release.test_queries) == (1, 1, 1)


def test_nothing_is_to_be_seen_before_all_is_made_and_of_two_makers_one_waits(paused: Any) -> None:
    release, pause, thread = paused
    release.refresh_from_db()
    assert (release.files_ready, release.file_list) == (False, [])
    assert not release.directory.exists()
    second: list[Release] = []
    other = elsewhere(lambda: second.append(services.release_make(release=Release(pk=release.pk))))
    wait_for(waiting, what="the second maker")
    pause.go_on.set()
    thread.join(30)
    other.join(30)
    release.refresh_from_db()
    assert second[0].made_at == release.made_at
    names = [path.name for path in release.directory.parent.iterdir()]
    assert names == [str(release.pk)]


def test_what_a_command_makes_is_neither_taken_up_nor_called_failed(
    paused: Any, tmp_path: Path
) -> None:
    release, pause, thread = paused
    release.refresh_from_db()
    assert (release.state, release.job) == ("running", None)
    for ask in (
        lambda: services.release_create(name="v1", created_by=None),
        lambda: services.release_retry(release=release, by=None),
        lambda: services.release_export(name="v1", directory=tmp_path / "out", new=True),
    ):
        with pytest.raises(
            (Conflict, ValidationError), match="Version 1 of 'v1' is already being made"
        ):
            ask()
    pause.go_on.set()
    thread.join(30)
    assert Release.objects.get().state == "done"


def test_two_who_ask_for_a_version_at_once_get_one(var_dir: Path) -> None:
    ready = threading.Barrier(4)
    sent: list[Release] = []
    refused: list[str] = []

    def ask() -> None:
        ready.wait(30)
        try:
            sent.append(services.release_create(name="v1", created_by=None))
        except ValidationError as error:
            refused.append(" ".join(error.messages))

    threads = [elsewhere(ask) for _ in range(4)]
    for thread in threads:
        thread.join(30)
    assert len(sent) == 1
    assert refused == ["Version 1 of 'v1' is already being made."] * 3
    assert Release.objects.count() == Job.objects.count() == 1


def test_a_cancelled_job_ends_it_and_leaves_nothing(labeled: Query, var_dir: Path) -> None:
    release = services.release_create(name="v1", created_by=None)
    Job.objects.filter(pk=release.job_id).update(state="running")
    job = Job.objects.get(pk=release.job_id)

    def report(steps: list[Step]) -> None:
        if steps[1].state == "running":
            elsewhere(lambda: job_cancel(job=job)).join(30)

    with pytest.raises(JobCanceled):
        services.release_make(release=release, job=job, report=report)
    release.refresh_from_db()
    assert not release.files_ready
    assert list(release.directory.parent.iterdir()) == []
    again = services.release_retry(release=release, by=None)
    assert job_slice_run(job_id=again.job_id) is Slice.FINISHED


@pytest.mark.faults
def test_a_worker_killed_in_the_middle_leaves_the_work_to_the_next(
    start_worker: Any, query: Query, judge: Any, admin: Any
) -> None:
    judge(query, 2, admin, "relevant")
    release = services.release_create(name="v1", created_by=None)
    # Holds the making up in the middle: its last read waits for this lock.
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("LOCK TABLE retrieval_species IN ACCESS EXCLUSIVE MODE")
        first = start_worker()

        def begun() -> bool:
            folder = release.directory.parent
            return bool(list(folder.glob(f".{release.pk}.partial-*/snapshot/pairs.parquet")))

        wait_for(begun, what="the worker's half-made files")
        first.kill()
        cursor.execute("ROLLBACK")
    assert not release.directory.exists()
    start_worker()

    def made() -> bool:
        return Release.objects.get().files_ready

    wait_for(made, what="the release")
    # What the first left is gone; other tests' releases lie beside it.
    assert list(release.directory.parent.glob(f".{release.pk}.partial-*")) == []
    annotations = (release.directory / "inquire_annotations.csv").read_text()
    assert annotations == 'query_id,image_id,image_path\n30,2,"train/a, b/2.jpg"\n'
