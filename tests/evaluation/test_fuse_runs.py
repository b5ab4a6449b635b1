"""Fusing runs by the leaderboard's button and through the API, and what a run declares."""

from __future__ import annotations

import pytest

from core.jobs.services import job_slice_run
from evaluation.leaderboard.selectors import board_runs
from evaluation.runs.models import Run, Submission
from evaluation.runs.services import rankings_on, run_publish
from tests.conftest import api_of, client_of
from tests.evaluation.runs import scored_run
from tests.evaluation.test_leaderboard_pages import STRONG, WEAK
from tests.releases.toy_release import toy_release


@pytest.fixture
def release(db, var_dir):
    return toy_release()


@pytest.fixture
def runs(release, admin):
    """Two published runs, and a private one of the admin with the validation query alone."""
    both = [
        run_publish(run=scored_run(release, orders, name=name))
        for name, orders in (("weak", WEAK), ("strong", STRONG))
    ]
    return [*both, scored_run(release, {1: [4, 1]}, name="val", owner=admin)]


def test_the_button_makes_a_private_run(release, runs, researcher, annotator, client):
    browser, address = client_of(researcher), f"/releases/{release.pk}/fuse/"
    page = browser.get(f"/releases/{release.pk}/analysis/")
    assert [run.name for run in page.context["fusible"]] == ["strong", "weak"]
    chosen = {"run": [run.pk for run in runs[:2]], "method": "rrf"}
    answer = browser.post(address, chosen)
    fused = Run.objects.get(kind=Run.Kind.FUSION)
    assert answer["Location"] == f"/runs/{fused.pk}/"
    assert (fused.name, fused.owner, fused.published) == ("RRF of weak, strong", researcher, False)
    assert Submission.objects.get().test_split
    job_slice_run(job_id=fused.job_id)
    fused.refresh_from_db()
    # Of query 1: 1 at the ranks 2 and 1, 4 at 3 and 2, 2 at 1 alone; the runs have three images.
    found = rankings_on(fused, release)
    assert {query: one.image_ids.tolist() for query, one in found.items()} == {
        1: [1, 4, 2],
        2: [2, 5],
        3: [3, 4, 5, 1],
        4: [1],
    }
    assert fused.ready
    assert fused.second_stages.count() == 2
    assert "Fusion of runs" in browser.get(answer["Location"]).content.decode()
    # Again, nothing is read again.
    job_slice_run(job_id=fused.job_id)
    best = fused.second_stages.first()
    for numbers, problem in (
        ([runs[0].pk], "Choose 2 to 10"),
        ([runs[0].pk, runs[2].pk], "Choose 2 to 10"),  # the private run isn't there for them
        ([runs[0].pk, best.pk], "Choose 2 to 10"),
    ):
        refused = browser.post(address, {"run": numbers}, follow=True)
        assert problem in refused.content.decode()
    assert browser.post(address, chosen | {"method": "borda"}).status_code == 404
    assert client_of(annotator).post(address, chosen).status_code == 403
    assert client.post(address, chosen).status_code == 302
    assert Run.objects.filter(kind=Run.Kind.FUSION).count() == 1


def test_by_the_api_it_keeps_the_splits_that_all_runs_hold(release, runs, admin, researcher):
    address, numbers = f"/api/releases/{release.pk}/fuse/", [run.pk for run in runs]
    body = {"runs": numbers, "method": "combmnz", "normalization": "z", "publish": True}
    answer = api_of(admin).post(address, body, format="json")
    fused = Run.objects.get(kind=Run.Kind.FUSION)
    assert (answer.status_code, answer.json()["id"]) == (201, fused.pk)
    assert fused.name == "CombMNZ (z-score) of weak, strong, val"
    job_slice_run(job_id=fused.job_id)
    fused.refresh_from_db()
    assert (fused.val_queries, fused.test_queries, fused.published) == (1, 0, True)
    assert not Submission.objects.filter(test_split=True).exists()
    board = board_runs(release, Run.Task.FULL, researcher).board("val")
    assert len(board.runs) > len(board_runs(release, Run.Task.FULL, researcher).board("test").runs)
    for wrong, status in (
        ({"runs": numbers[:1] * 2}, 409),
        ({"runs": [numbers[0], 999]}, 400),
        ({"runs": numbers[:1]}, 400),
        ({"runs": numbers, "method": "borda"}, 400),
    ):
        assert api_of(admin).post(address, wrong, format="json").status_code == status, wrong
    # The private run isn't there for others.
    answer = api_of(researcher).post(address, {"runs": numbers}, format="json")
    assert answer.json()["errors"][0]["field"] == "runs"
    assert Run.objects.filter(kind=Run.Kind.FUSION).count() == 1


def test_declared_data_are_shown_and_exported(release, runs, researcher):
    run = scored_run(release, WEAK, name="mine", owner=researcher)
    browser = client_of(researcher)
    card = {"name": "mine", "code": "https://example.org/code", "tuning": "zero_shot"}
    assert browser.post(f"/runs/{run.pk}/card/", card).status_code == 302
    page = browser.get(f"/runs/{run.pk}/").content.decode()
    assert 'href="https://example.org/code"' in page
    assert "<dt>Tuning</dt><dd>zero-shot</dd>" in page
    assert browser.post(f"/runs/{run.pk}/card/", card | {"tuning": "maybe"}).status_code == 200
    run_publish(run=run)
    shown = browser.get(f"/releases/{release.pk}/leaderboard.json").json()["tasks"]["full"]["runs"]
    [mine] = [one for one in shown if one["name"] == "mine"]
    assert (mine["code"], mine["tuning"]) == (card["code"], "zero_shot")
    told = browser.get(f"/api/runs/{run.pk}/").json()
    assert (told["code"], told["tuning"]) == (card["code"], "zero_shot")
