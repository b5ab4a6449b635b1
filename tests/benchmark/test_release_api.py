"""Releases through the API: every role at every endpoint, and what each answer holds."""

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from benchmark import services
from benchmark.models import Release
from benchmark.release_files import RELEASE_FILES
from retrieval.models import Job
from retrieval.services.jobs import job_slice_run

ENDPOINTS = {
    "list": lambda api, pk: api.get("/api/releases/"),
    "detail": lambda api, pk: api.get(f"/api/releases/{pk}/"),
    "file": lambda api, pk: api.get(f"/api/releases/{pk}/files/judgments.csv"),
    "create": lambda api, pk: api.post("/api/releases/", {"name": "v2"}),
}
EXPECTED = {
    "anonymous": {"list": 401, "detail": 401, "file": 401, "create": 401},
    "annotator": {"list": 403, "detail": 403, "file": 403, "create": 403},
    "reviewer": {"list": 200, "detail": 200, "file": 200, "create": 403},
    "admin": {"list": 200, "detail": 200, "file": 200, "create": 201},
}


@pytest.fixture
def release(query, judge, annotator, var_dir) -> Release:
    """A release that a job made."""
    judge(query, 2, annotator, "relevant", rank=1, seconds=1.5)
    release = services.release_create(name="v1", created_by=None)
    job_slice_run(job_id=release.job_id)
    release.refresh_from_db()
    return release


@pytest.fixture
def api(request: pytest.FixtureRequest) -> Callable[[str], APIClient]:
    return lambda role: request.getfixturevalue(f"{role}_api")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("role", EXPECTED)
def test_each_role_at_each_endpoint(release, api, role, endpoint):
    response = ENDPOINTS[endpoint](api(role), release.pk)
    assert response.status_code == EXPECTED[role][endpoint]
    if response.status_code >= 400:
        assert response["Content-Type"] == "application/problem+json"
        assert response.json()["status"] == response.status_code
        assert Release.objects.count() == 1


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
@pytest.mark.parametrize("role", ["annotator", "reviewer", "admin"])
def test_a_release_cannot_be_changed_or_removed(release, api, role, method):
    response = getattr(api(role), method)(f"/api/releases/{release.pk}/", {"name": "v9"})
    assert response.status_code == (405 if role == "admin" else 403)
    assert Release.objects.get().name == "v1"


def test_a_release_says_what_it_holds(release, reviewer_api):
    (listed,) = reviewer_api.get("/api/releases/").json()["results"]
    body = reviewer_api.get(f"/api/releases/{release.pk}/").json()
    assert listed == body
    assert (body["name"], body["state"], body["job"]) == ("v1", "done", release.job_id)
    assert (body["val_queries"], body["test_queries"]) == (0, 1)
    assert (body["positives"], body["judgments"]) == (1, 1)
    assert body["created_by"] is None
    assert body["files"] == release.file_list
    assert [entry["name"] for entry in body["files"]] == list(RELEASE_FILES)


def test_a_file_is_a_download_of_the_exact_bytes(release, reviewer_api):
    response = reviewer_api.get(f"/api/releases/{release.pk}/files/inquire_annotations.csv")
    assert b"".join(response.streaming_content) == (
        b'query_id,image_id,image_path\n30,2,"train/a, b/2.jpg"\n'
    )
    assert response["Content-Disposition"] == 'attachment; filename="inquire_annotations.csv"'
    assert response["Content-Type"] == "text/csv; charset=utf-8"


def test_an_admin_begins_a_release_that_a_job_makes(release, admin_api, admin):
    response = admin_api.post("/api/releases/", {"name": "v2"})
    body = response.json()
    assert response["Location"].endswith(f"/api/releases/{body['id']}/")
    assert (body["state"], body["created_by"], body["files"]) == ("queued", "ada", [])
    job = Job.objects.get(pk=body["job"])
    assert (job.kind, job.created_by) == ("export_release", admin)
    waiting = admin_api.get(f"/api/releases/{body['id']}/files/judgments.csv")
    assert waiting.status_code == 404
    job_slice_run(job_id=job.pk)
    assert admin_api.get(f"/api/releases/{body['id']}/").json()["state"] == "done"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, "This field is required."),
        ({"name": ""}, "This field may not be blank."),
        ({"name": "x" * 101}, "Ensure this field has no more than 100 characters."),
        ({"name": "v1"}, "A release 'v1' exists and never changes; choose another name."),
        ({"name": "a\u0007b"}, "The name holds characters that can't be printed."),
    ],
)
def test_bad_names_are_refused_with_the_field_named(release, admin_api, data, expected):
    response = admin_api.post("/api/releases/", data)
    assert response.status_code == 400
    assert response.json()["errors"] == [{"field": "name", "detail": expected}]
    assert Release.objects.count() == 1


@pytest.mark.parametrize(
    "path",
    [
        "999999/",
        "99999999999999999999999/",
        "99999999999999999999999/files/judgments.csv",
        "one/",
        "999999/files/judgments.csv",
        "{pk}/files/secret_key",
        "{pk}/files/..%2F..%2Fsecret_key",
        "{pk}/files/../../secret_key",
    ],
)
def test_what_is_not_there_is_a_404(release, admin_api, path):
    response = admin_api.get("/api/releases/" + path.format(pk=release.pk))
    assert response.status_code == 404
