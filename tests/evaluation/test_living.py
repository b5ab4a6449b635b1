"""A living benchmark: a run's unjudged images are judged, and the next version tells the change."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from core.jobs.models import Job
from core.jobs.services import Slice, job_slice_run
from evaluation.runs import baselines
from evaluation.runs.model_evaluations import evaluation_begin
from evaluation.runs.models import Run, RunScores
from evaluation.runs.services import run_publish, run_unpublish
from labeling.blind.services import blind_show
from labeling.judging.blind import REQUESTED
from labeling.judging.models import BlindItem, Judgment
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from releases.making.services import release_claim, release_make, release_verify
from releases.models import Release
from retrieval.corpus.models import Image
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.images.storage import image_store
from tests.conftest import api_of, client_of
from tests.evaluation.runs import scored_run
from tests.labeling.conftest import (
    FIRST_ID,
    MakeQuery,
    make_images,
    new_query,
    open_query,
    toy_model,
)
from tests.labeling.judging import item, judge, record
from tests.retrieval.making import jpeg

__all__ = ["new_query", "open_query", "toy_model"]

VAL, TEST = 31, 32
KNOWN, OLD, NEW = 10, range(4), range(20, 26)


@pytest.fixture
def queries(
    var_dir: Path, toy_model: EmbeddingModel, open_query: MakeQuery, annotator: Any, admin: Any
) -> dict[int, Query]:
    """A complete query of each split: of the first images the first are relevant."""
    make_images(40)
    found = {}
    for number, split in ((VAL, "val"), (TEST, "test")):
        query = open_query(f"a {split} toad", query_id=number, split=split)
        judge(query, annotator, OLD, "relevant")
        judge(query, annotator, range(len(OLD), KNOWN), "not_relevant")
        for state in ("submitted", "complete"):
            query = query_transition(query=query, to_state=state, by=admin, note="enough")
        found[number] = query
    return found


def made() -> Release:
    claimed = release_claim(name="Toads", created_by=None, options={"rerank_model": ""})
    return release_make(release=claimed)


def text_of(release: Release, name: str) -> str:
    return (release.directory / name).read_text()


def work() -> None:
    """Do every job to its end."""
    while job := Job.objects.filter(state__in=Job.UNFINISHED).first():
        job_slice_run(job_id=job.pk)
        job.refresh_from_db()
        assert job.state != "failed", job.error


def public(release: Release, name: str, *numbers: int, **values: Any) -> Run:
    order = [FIRST_ID + number for number in numbers]
    run = scored_run(release, {VAL: order, TEST: order}, name=name, **values)
    return run_publish(run=run)


def test_from_a_run_to_the_next_version(
    queries: dict[int, Query], other_annotator: Any, researcher: Any, reviewer: Any
) -> None:
    first = made()
    pool = public(first, "of the pool", *OLD, *range(10, 16))
    other = public(first, "unlike the pool", *NEW, 0, 1)
    private = scored_run(first, {VAL: [FIRST_ID + 30]}, name="private", owner=researcher)
    address = f"/runs/{other.pk}/judge/"
    assert client_of(researcher).post(address, {"depth": 6}).status_code == 403
    shown = client_of(researcher).get(f"/runs/{other.pk}/").content
    assert b"Have them judged" not in shown
    browser = client_of(reviewer)
    assert b"Have them judged" in browser.get(f"/runs/{other.pk}/").content
    for depth in (0, 101, 7, 7):
        answer = browser.post(address, {"depth": depth}, follow=True)
        words = {0: "from 1 to 100", 101: "from 1 to 100"}.get(depth, "")
        assert words in answer.content.decode()
    assert BlindItem.objects.count() == 2 * len(NEW)
    assert {one.requested_for for one in BlindItem.objects.all()} == {
        f"run {other.pk}: unlike the pool"
    }
    for query in queries.values():
        queue = blind_show(kind=REQUESTED, query=query, annotator=other_annotator, count=50)
        assert {one - FIRST_ID for one in queue.to_judge} == set(NEW)
        for number in NEW:
            record(query, other_annotator, item(number, "relevant", source="run"))
    assert set(Judgment.objects.values_list("source", flat=True)) == {"list", "run"}

    second = made()
    assert Job.objects.filter(kind="rescore_runs").count() == 1
    work()
    # Of ten relevant images one run has the first four, the other the six new ones and two more.
    row = "| unlike the pool | 9.8 | 80.0 |"
    assert [one["name"] for one in second.difference["runs"][0]["runs"]] == [other.name, pool.name]
    shown = text_of(second, "difference.md")
    assert "## Runs over the corpus, validation queries" in shown
    assert "test queries" not in shown
    assert "private" not in shown
    assert row in shown
    assert "| of the pool | 100.0 | 40.0 |" in shown
    assert "2 change rank by mAP@50; τ-b of the two orders is -1.00" in shown
    assert "## Runs over the corpus, test queries" in text_of(second, "difference_test.md")
    splits = [
        {one["split"] for one in api_of(who).get(address).json()["difference"]["runs"]}
        for address in [f"/api/releases/{second.pk}/"]
        for who in (researcher, reviewer)
    ]
    assert splits == [{"val"}, {"val", "test"}]
    assert "2 change rank" in client_of(researcher).get(f"/releases/{second.pk}/").content.decode()
    # Both scores on the run's page; of hidden test labels for reviewers alone.
    assert RunScores.objects.filter(release=second, run__in=(pool, other)).count() == 2
    assert not RunScores.objects.filter(release=second, run=private).exists()
    lines = [
        client_of(who).get(f"/runs/{other.pk}/").context["versions"]
        for who in (researcher, reviewer)
    ]
    assert [
        [(one.release.version, one.split, one.figures[0]) for one in seen] for seen in lines
    ] == [
        [(1, "val", "9.8"), (2, "val", "80.0")],
        [(1, "val", "9.8"), (2, "val", "80.0"), (1, "test", "9.8"), (2, "test", "80.0")],
    ]
    # What was written then comes out again, though a run is private now.
    run_unpublish(run=other)
    assert release_verify(release=second) == []


def test_a_model_is_embedded_ranked_and_scored_by_one_job(
    queries: dict[int, Query], reviewer: Any, researcher: Any, annotator: Any,
    toy_model: EmbeddingModel, monkeypatch: pytest.MonkeyPatch, capsys: Any, var_dir: Path,
) -> None:  # fmt: skip
    stored = image_store(jpeg("green", (40, 30)))
    Image.objects.update(sha256=stored.sha256, size_bytes=stored.size_bytes)
    release = made()
    address = f"/releases/{release.pk}/evaluate/"
    for one, status in ((annotator, 403), (researcher, 403), (reviewer, 200)):
        assert client_of(one).get(address).status_code == status
    assert b"accepted are" in client_of(reviewer).post(address, {"model": "no such"}).content
    answer = client_of(reviewer).post(address, {"model": toy_model.name})
    job = evaluation_begin(release=release, model_name=toy_model.name)
    assert answer["Location"] == f"/jobs/{job.pk}/"

    def killed(**_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(baselines, "run_store", killed)
        with pytest.raises(KeyboardInterrupt):
            job_slice_run(job_id=job.pk)
    job.refresh_from_db()
    assert (job.state, job.total) == ("running", 3)
    work()
    job.refresh_from_db()
    assert (job.state, job.done, job.total) == ("done", 3, 3)
    run = Run.objects.get(kind="model", release=release)
    assert (run.published, run.ready, run.embedding_model) == (True, True, toy_model)
    # One that is known by its name alone is embedded first.
    evaluation_begin(release=release, model_name="PE-Core-T-16-384/random")
    work()
    run = Run.objects.get(kind="model", embedding_model__name="PE-Core-T-16-384/random")
    assert run.ready
    assert Embedding.objects.filter(model=run.embedding_model).count() == 40
    # What can't be read can't be embedded, and then no run pretends to cover the corpus.
    shutil.rmtree(var_dir / "images")
    Embedding.objects.filter(image__gte=FIRST_ID + 20).delete()
    second = made()
    address, body = f"/api/releases/{second.pk}/evaluate/", {"model": toy_model.name}
    assert api_of(researcher).post(address, body).status_code == 403
    asking = api_of(reviewer)
    assert asking.post(address, {"model": "nobody/knows"}).status_code == 400
    answer = asking.post(address, body)
    assert (answer.status_code, answer.json()["title"]) == (202, "Evaluate toy-model on Toads v2")
    failing = Job.objects.filter(kind="evaluate_model").latest("pk")
    while job_slice_run(job_id=failing.pk) is Slice.MORE:
        pass
    failing.refresh_from_db()
    assert failing.state == "failed"
    assert not Run.objects.filter(kind="model", release=second).exists()
