"""Runs through the API: roles at every address, submissions, errors with lines, scores."""

import gzip

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from annotator.web.uploads import REST_OF_THE_FORM
from benchmark.runs.models import Run
from benchmark.runs.services import run_publish
from core.jobs.services import job_slice_run
from tests.benchmark.runs import scored_run, trec
from tests.benchmark.toy_release import toy_release
from tests.conftest import api_of, client_of, person

ORDERS = {1: [2, 1, 4], 2: [2, 5], 3: [3]}


@pytest.fixture
def release(images, var_dir):
    return toy_release()


@pytest.fixture
def apis(researcher, annotator, reviewer, admin, anonymous_api):
    people = {"researcher": researcher, "annotator": annotator, "reviewer": reviewer}
    clients = {role: api_of(user) for role, user in people.items()}
    return {"anonymous": anonymous_api, **clients, "admin": api_of(admin)}


def post_run(client, release, content: bytes, **values):
    file = SimpleUploadedFile("run.txt", content)
    data = {"file": file, "name": "my run", **values}
    return client.post(f"/api/releases/{release.pk}/runs/", data, format="multipart")


def codes(apis, method: str, path: str, **options) -> dict[str, int]:
    return {
        role: getattr(client, method)(path, **options).status_code for role, client in apis.items()
    }


def test_a_run_from_upload_to_scores(release, researcher_api, researcher):
    answer = post_run(
        researcher_api,
        release,
        gzip.compress(trec(ORDERS)),
        task="full",
        parameters="86.5",
        open_weights="true",
    )
    assert answer.status_code == 201
    body = answer.json()
    assert answer["Location"].endswith(f"/api/runs/{body['id']}/")
    assert (body["state"], body["owner"], body["published_at"]) == ("queued", "rosa", None)
    assert (body["parameters"], body["open_weights"], body["errors"]) == (86.5, True, [])
    job_slice_run(job_id=body["job"])
    detail = researcher_api.get(f"/api/runs/{body['id']}/").json()
    assert (detail["state"], detail["rows"]) == ("ready", 6)
    [scores] = detail["scores"]
    assert scores["release_name"] == "Toy v1"
    assert scores["means"]["val"]["AP@50"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert scores["means"]["test"]["AP@50"] == pytest.approx((1 + 1 / 3) / 2)
    queries = researcher_api.get(f"/api/runs/{body['id']}/scores/").json()
    assert queries["query_ids"] == [1, 2, 3]
    assert queries["measures"]["RR@50"] == [0.5, 1, 1]


def test_what_is_not_named_a_method_stays_empty(release, researcher_api):
    body = post_run(researcher_api, release, trec(ORDERS)).json()
    assert (body["open_weights"], body["parameters"], body["cost"]) == (None, None, None)


def test_errors_of_a_run_come_with_file_line_and_field(release, researcher_api):
    answer = post_run(researcher_api, release, b"1 Q0 2 1 0.5 x\n9 Q0 1 1 x x\n")
    assert answer.status_code == 201
    job_slice_run(job_id=answer.json()["job"])
    body = researcher_api.get(f"/api/runs/{answer.json()['id']}/").json()
    message = "'x' is not a finite number"
    assert body["state"] == "failed"
    assert body["error"] == f"The file is refused. run.txt, line 2, score: {message}"
    assert body["errors"] == [{"file": "run.txt", "line": 2, "field": "score", "message": message}]


def test_a_form_with_errors_makes_no_run(release, researcher_api, settings):
    answer = post_run(researcher_api, release, trec(ORDERS), name="", split="both")
    assert answer.status_code == 400
    assert {error["field"] for error in answer.json()["errors"]} == {"name", "split"}
    settings.RUN_MAX_BYTES = 10
    answer = post_run(researcher_api, release, trec(ORDERS))
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert "10 are taken" in answer.json()["detail"]
    assert not Run.objects.exists()


def test_control_characters_of_a_file_are_reported(release, researcher_api):
    body = post_run(researcher_api, release, b"query_id,\x1b\xff\n1,2\n").json()
    job_slice_run(job_id=body["job"])
    errors = researcher_api.get(f"/api/runs/{body['id']}/").json()["errors"]
    assert {error["field"] for error in errors} == {"image_id", "score"}


def test_a_form_that_is_too_large_is_refused_before_it_is_kept(release, researcher, settings):
    settings.RUN_MAX_BYTES = 1000
    content = b"x" * (1000 + REST_OF_THE_FORM)
    answer = post_run(api_of(researcher), release, content)
    assert (answer.status_code, answer["Content-Type"]) == (413, "application/problem+json")
    file = SimpleUploadedFile("run.txt", content)
    page = client_of(researcher).post(f"/releases/{release.pk}/submit/", {"file": file})
    assert page.status_code == 400


def test_the_limit_is_429_with_the_time_to_wait(release, researcher_api, settings):
    settings.TEST_SUBMISSIONS_PER_DAY = 1
    assert researcher_api.get("/api/submissions/").json() == {
        "limit": 1,
        "left": 1,
        "next_at": None,
    }
    assert post_run(researcher_api, release, trec(ORDERS)).status_code == 201
    answer = post_run(researcher_api, release, trec(ORDERS))
    assert answer.status_code == 429
    assert 86_000 < int(answer["Retry-After"]) <= 86_400
    assert researcher_api.get("/api/submissions/").json()["left"] == 0


def test_roles_at_every_address(release, apis, researcher):
    run = run_publish(run=scored_run(release, ORDERS, owner=researcher))
    reading = {"anonymous": 401, "researcher": 200, "annotator": 403, "reviewer": 200, "admin": 200}
    for path in (
        "/api/runs/",
        f"/api/runs/{run.pk}/",
        f"/api/runs/{run.pk}/scores/",
        f"/api/releases/{release.pk}/runs/",
        "/api/submissions/",
    ):
        assert codes(apis, "get", path) == reading, path
    owning = {"anonymous": 401, "researcher": 200, "annotator": 403, "reviewer": 403, "admin": 200}
    card = {"data": {"description": "x"}, "format": "json"}
    assert codes(apis, "patch", f"/api/runs/{run.pk}/", **card) == owning
    assert codes(apis, "post", f"/api/runs/{run.pk}/publish/") == owning
    deleting = {**owning, "researcher": 409, "admin": 409}
    assert codes(apis, "delete", f"/api/runs/{run.pk}/") == deleting
    admins = {**owning, "researcher": 403}
    assert codes(apis, "post", f"/api/runs/{run.pk}/unpublish/") == admins
    making = {**admins, "admin": 202}
    assert codes(apis, "post", f"/api/releases/{release.pk}/baselines/") == making
    submitting = {
        role: post_run(api, release, trec(ORDERS)).status_code for role, api in apis.items()
    }
    assert submitting == {
        "anonymous": 401,
        "researcher": 201,
        "annotator": 403,
        "reviewer": 201,
        "admin": 201,
    }


def test_private_runs_are_hidden_from_others(release, apis, researcher):
    run = scored_run(release, ORDERS, owner=researcher)
    best = run.second_stages.first()
    other = api_of(person("rolf", "researcher"))
    hidden = {"anonymous": 401, "researcher": 200, "annotator": 403, "reviewer": 404, "admin": 200}
    for number in (run.pk, best.pk):
        assert codes(apis, "get", f"/api/runs/{number}/") == hidden
        assert codes(apis, "get", f"/api/runs/{number}/scores/") == hidden
        assert other.get(f"/api/runs/{number}/").status_code == 404
    for method, path in (
        ("patch", f"/api/runs/{run.pk}/"),
        ("delete", f"/api/runs/{run.pk}/"),
        ("post", f"/api/runs/{run.pk}/publish/"),
        ("post", f"/api/runs/{run.pk}/scores/"),
    ):
        assert getattr(other, method)(path).status_code == 404
    for path in ("/api/runs/", f"/api/releases/{release.pk}/runs/"):
        assert other.get(path).json()["count"] == 0
        assert apis["researcher"].get(path).json()["count"] == 3


def test_owners_delete_their_private_runs(release, researcher_api, researcher, admin):
    run = scored_run(release, ORDERS, owner=researcher)
    assert researcher_api.delete(f"/api/runs/{run.pk}/").status_code == 204
    assert not Run.objects.exists()
    run = scored_run(release, ORDERS, owner=researcher)
    assert api_of(admin).delete(f"/api/runs/{run.pk}/").status_code == 204


def test_nothing_but_the_card_changes(release, researcher_api, researcher):
    run = scored_run(release, ORDERS, owner=researcher)
    answer = researcher_api.patch(
        f"/api/runs/{run.pk}/",
        {
            "name": "new",
            "owner": "ada",
            "sha256": "0",
            "task": "rerank",
            "published_at": "2026-01-01",
        },
        format="json",
    )
    body = answer.json()
    assert (body["name"], body["owner"], body["sha256"]) == ("new", "rosa", run.sha256)
    assert (body["task"], body["published_at"]) == ("full", None)
    answer = researcher_api.patch(f"/api/runs/{run.pk}/", {"cost": -1}, format="json")
    assert [error["field"] for error in answer.json()["errors"]] == ["cost"]
    answer = researcher_api.patch(f"/api/runs/{run.pk}/", {"open_weights": None}, format="json")
    assert answer.json()["open_weights"] is None


def test_publishing_needs_scores(release, researcher_api):
    body = post_run(researcher_api, release, trec(ORDERS)).json()
    answer = researcher_api.post(f"/api/runs/{body['id']}/publish/")
    assert (answer.status_code, "isn't scored yet" in answer.json()["detail"]) == (409, True)
    job_slice_run(job_id=body["job"])
    assert researcher_api.post(f"/api/runs/{body['id']}/publish/").json()["published_at"]


def test_baselines_stay_public(release, apis):
    job = apis["admin"].post(f"/api/releases/{release.pk}/baselines/").json()
    job_slice_run(job_id=job["id"])
    random = Run.objects.get(kind="random", task="full")
    answer = apis["admin"].post(f"/api/runs/{random.pk}/unpublish/")
    assert (answer.status_code, answer.json()["detail"]) == (409, "Baselines are always public.")
    assert apis["admin"].delete(f"/api/runs/{random.pk}/").status_code == 409


def test_scores_on_another_version(release, researcher_api, researcher):
    newer, other = toy_release(version=2), toy_release("Other")
    run = scored_run(release, ORDERS, owner=researcher)
    path = f"/api/runs/{run.pk}/scores/"
    assert researcher_api.get(f"{path}?release={newer.pk}").status_code == 404
    answer = researcher_api.post(path, {"release": newer.pk}, format="json")
    assert (answer.status_code, answer.json()["release"]) == (201, newer.pk)
    assert researcher_api.get(f"{path}?release={newer.pk}").status_code == 200
    assert researcher_api.get(f"{path}?release={newer}").status_code == 200
    answer = researcher_api.post(path, {"release": other.pk}, format="json")
    assert answer.json()["errors"] == [
        {"field": "release", "detail": "It is of another benchmark."}
    ]
    assert len(researcher_api.get(f"/api/runs/{run.pk}/").json()["scores"]) == 2


def test_lists_can_be_narrowed(release, researcher_api, researcher):
    scored_run(release, ORDERS, owner=researcher)
    scored_run(release, {1: [1]}, owner=researcher, task="rerank", name="second")
    listed = researcher_api.get(f"/api/releases/{release.pk}/runs/?task=rerank").json()
    assert [run["name"] for run in listed["results"]] == ["second"]
    listed = researcher_api.get("/api/runs/?kind=best").json()
    assert listed["count"] == 2
    assert researcher_api.get("/api/releases/999999/runs/").status_code == 404
