"""Runs through the API: roles at every address, submissions, errors with lines, scores."""

from __future__ import annotations

import gzip
from typing import Any, NamedTuple

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from annotator.web.bodies import REST_OF_THE_FORM
from core.jobs.services import job_slice_run
from evaluation.runs.models import Run
from evaluation.runs.services import run_publish
from releases.models import Release
from tests.conftest import api_of, client_of, person
from tests.evaluation.runs import scored_run, trec
from tests.releases.conftest import World
from tests.releases.toy_release import toy_release

pytestmark = pytest.mark.django_db

ORDERS = {1: [2, 1, 4], 2: [2, 5], 3: [3]}


class Site(NamedTuple):
    """A release, and API clients by role."""

    release: Release
    apis: dict[str, APIClient]
    researcher: Any

    @property
    def api(self) -> APIClient:
        return self.apis["researcher"]

    def send(self, content: bytes, role: str = "researcher", **values: Any) -> Any:
        """Submit a run file."""
        data = {"file": SimpleUploadedFile("run.txt", content), "name": "my run", **values}
        address = f"/api/releases/{self.release.pk}/runs/"
        return self.apis[role].post(address, data, format="multipart")

    def codes(self, method: str, path: str, **options: Any) -> dict[str, int]:
        return {
            role: getattr(client, method)(path, **options).status_code
            for role, client in self.apis.items()
        }


@pytest.fixture
def site(toy: Release, world: World, db: None) -> Site:
    roles = ("researcher", "annotator", "reviewer", "admin")
    apis = {"anonymous": APIClient()} | {role: world.api(role) for role in roles}
    return Site(toy, apis, world.person("researcher"))


def test_a_run_from_upload_to_scores(site: Site) -> None:
    answer = site.send(
        gzip.compress(trec(ORDERS)), task="full", parameters="86.5", open_weights="true"
    )
    assert answer.status_code == 201
    body = answer.json()
    address = f"/api/runs/{body['id']}/"
    assert answer["Location"].endswith(address)
    assert (body["state"], body["owner"], body["published_at"]) == (
        "queued", "the-researcher", None,
    )  # fmt: skip
    assert (body["parameters"], body["open_weights"], body["errors"]) == (86.5, True, [])
    answer = site.api.post(f"{address}publish/")
    assert (answer.status_code, "isn't scored yet" in answer.json()["detail"]) == (409, True)
    job_slice_run(job_id=body["job"])
    detail = site.api.get(address).json()
    assert (detail["state"], detail["rows"]) == ("ready", 6)
    [scores] = detail["scores"]
    assert scores["release_name"] == "Toy v1"
    assert scores["means"]["val"]["AP@50"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert scores["means"]["test"]["AP@50"] == pytest.approx((1 + 1 / 3) / 2)
    queries = site.api.get(f"{address}scores/").json()
    assert queries["query_ids"] == [1, 2, 3]
    assert queries["measures"]["RR@50"] == [0.5, 1, 1]
    assert site.api.post(f"{address}publish/").json()["published_at"]


def test_errors_of_a_run_come_with_file_line_and_field(site: Site) -> None:
    answer = site.send(b"1 Q0 2 1 0.5 x\n9 Q0 1 1 x x\n")
    assert answer.status_code == 201
    job_slice_run(job_id=answer.json()["job"])
    body = site.api.get(f"/api/runs/{answer.json()['id']}/").json()
    message = "'x' is not a finite number"
    assert body["state"] == "failed"
    assert body["error"] == f"The file is refused. run.txt, line 2, score: {message}"
    assert body["errors"] == [{"file": "run.txt", "line": 2, "field": "score", "message": message}]
    # Also where the file holds characters that no page can show.
    body = site.send(b"query_id,\x1b\xff\n1,2\n").json()
    job_slice_run(job_id=body["job"])
    errors = site.api.get(f"/api/runs/{body['id']}/").json()["errors"]
    assert {error["field"] for error in errors} == {"image_id", "score"}


def test_a_form_with_errors_or_too_large_makes_no_run(site: Site, settings: Any) -> None:
    answer = site.send(trec(ORDERS), name="", split="both")
    assert answer.status_code == 400
    assert {error["field"] for error in answer.json()["errors"]} == {"name", "split"}
    settings.RUN_MAX_BYTES = 10
    answer = site.send(trec(ORDERS))
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert "10 are taken" in answer.json()["detail"]
    # One that is much too large is refused before it is kept.
    content = b"x" * (10 + REST_OF_THE_FORM)
    answer = site.send(content)
    assert (answer.status_code, answer["Content-Type"]) == (413, "application/problem+json")
    file = SimpleUploadedFile("run.txt", content)
    page = client_of(site.researcher).post(f"/releases/{site.release.pk}/submit/", {"file": file})
    assert page.status_code == 400
    assert not Run.objects.exists()


def test_the_limit_is_429_with_the_time_to_wait(site: Site, settings: Any) -> None:
    settings.TEST_SUBMISSIONS_PER_DAY = 1
    allowance = {"limit": 1, "left": 1, "next_at": None}
    assert site.api.get("/api/submissions/").json() == allowance
    assert site.send(trec(ORDERS)).status_code == 201
    answer = site.send(trec(ORDERS))
    assert answer.status_code == 429
    assert 86_000 < int(answer["Retry-After"]) <= 86_400
    assert site.api.get("/api/submissions/").json()["left"] == 0


def test_roles_at_every_address(site: Site) -> None:
    release = site.release
    run = run_publish(run=scored_run(release, ORDERS, owner=site.researcher))
    base = {"anonymous": 401, "researcher": 200, "annotator": 403}
    reading = {**base, "reviewer": 200, "admin": 200}
    for path in (
        "/api/runs/",
        f"/api/runs/{run.pk}/",
        f"/api/runs/{run.pk}/scores/",
        f"/api/releases/{release.pk}/runs/",
        "/api/submissions/",
    ):
        assert site.codes("get", path) == reading, path
    owning = {**base, "reviewer": 403, "admin": 200}
    card = {"data": {"description": "x"}, "format": "json"}
    assert site.codes("patch", f"/api/runs/{run.pk}/", **card) == owning
    assert site.codes("post", f"/api/runs/{run.pk}/publish/") == owning
    # What is public isn't deleted.
    deleting = {**owning, "researcher": 409, "admin": 409}
    assert site.codes("delete", f"/api/runs/{run.pk}/") == deleting
    admins = {**owning, "researcher": 403}
    assert site.codes("post", f"/api/runs/{run.pk}/unpublish/") == admins
    making = {**admins, "admin": 202}
    assert site.codes("post", f"/api/releases/{release.pk}/baselines/") == making
    submitting = {role: site.send(trec(ORDERS), role).status_code for role in site.apis}
    assert submitting == {**base, "researcher": 201, "reviewer": 201, "admin": 201}


def test_private_runs_are_hidden_from_others_and_deleted_by_their_owner(site: Site) -> None:
    run = scored_run(site.release, ORDERS, owner=site.researcher)
    best = run.second_stages.first()
    other = api_of(person("rolf", "researcher"))
    hidden = {"anonymous": 401, "researcher": 200, "annotator": 403, "reviewer": 404, "admin": 200}
    for number in (run.pk, best.pk):
        assert site.codes("get", f"/api/runs/{number}/") == hidden
        assert site.codes("get", f"/api/runs/{number}/scores/") == hidden
        assert other.get(f"/api/runs/{number}/").status_code == 404
    for method, path in (
        ("patch", f"/api/runs/{run.pk}/"),
        ("delete", f"/api/runs/{run.pk}/"),
        ("post", f"/api/runs/{run.pk}/publish/"),
        ("post", f"/api/runs/{run.pk}/scores/"),
    ):
        assert getattr(other, method)(path).status_code == 404
    for path in ("/api/runs/", f"/api/releases/{site.release.pk}/runs/"):
        assert other.get(path).json()["count"] == 0
        assert site.api.get(path).json()["count"] == 3
    assert site.api.delete(f"/api/runs/{run.pk}/").status_code == 204
    assert not Run.objects.exists()


def test_nothing_but_the_card_changes(site: Site) -> None:
    run = scored_run(site.release, ORDERS, owner=site.researcher)
    changes = {"name": "new", "owner": "ada", "sha256": "0", "task": "rerank",
               "published_at": "2026-01-01"}  # fmt: skip
    body = site.api.patch(f"/api/runs/{run.pk}/", changes, format="json").json()
    assert (body["name"], body["owner"], body["sha256"]) == ("new", "the-researcher", run.sha256)
    assert (body["task"], body["published_at"], body["open_weights"]) == ("full", None, None)
    answer = site.api.patch(f"/api/runs/{run.pk}/", {"cost": -1}, format="json")
    assert [error["field"] for error in answer.json()["errors"]] == ["cost"]


def test_baselines_stay_public(site: Site) -> None:
    admin = site.apis["admin"]
    job = admin.post(f"/api/releases/{site.release.pk}/baselines/").json()
    job_slice_run(job_id=job["id"])
    random = Run.objects.get(kind="random", task="full")
    answer = admin.post(f"/api/runs/{random.pk}/unpublish/")
    assert (answer.status_code, answer.json()["detail"]) == (409, "Baselines are always public.")
    assert admin.delete(f"/api/runs/{random.pk}/").status_code == 409


def test_scores_on_another_version(site: Site) -> None:
    newer, other = toy_release(version=2), toy_release("Other")
    run = scored_run(site.release, ORDERS, owner=site.researcher)
    path = f"/api/runs/{run.pk}/scores/"
    assert site.api.get(f"{path}?release={newer.pk}").status_code == 404
    answer = site.api.post(path, {"release": newer.pk}, format="json")
    assert (answer.status_code, answer.json()["release"]) == (201, newer.pk)
    for named in (newer.pk, newer):
        assert site.api.get(f"{path}?release={named}").status_code == 200
    answer = site.api.post(path, {"release": other.pk}, format="json")
    error = {"field": "release", "detail": "It is of another benchmark."}
    assert answer.json()["errors"] == [error]
    assert len(site.api.get(f"/api/runs/{run.pk}/").json()["scores"]) == 2


def test_lists_can_be_narrowed(site: Site) -> None:
    scored_run(site.release, ORDERS, owner=site.researcher)
    scored_run(site.release, {1: [1]}, owner=site.researcher, task="rerank", name="second")
    listed = site.api.get(f"/api/releases/{site.release.pk}/runs/?task=rerank").json()
    assert [run["name"] for run in listed["results"]] == ["second"]
    assert site.api.get("/api/runs/?kind=best").json()["count"] == 2
    assert site.api.get("/api/releases/999999/runs/").status_code == 404
