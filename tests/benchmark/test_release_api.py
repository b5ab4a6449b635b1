"""Releases through the API: every role at every endpoint, and what each answer holds."""

import hashlib
import io
import zipfile
from collections.abc import Callable
from itertools import product

import pytest
from rest_framework.test import APIClient

from benchmark.releases import services
from benchmark.releases.models import Release
from benchmark.releases.snapshot.release_files import RELEASE_FILES
from core.jobs.models import Job
from core.jobs.services import job_slice_run

ENDPOINTS = {
    "list": lambda api, pk: api.get("/api/releases/"),
    "detail": lambda api, pk: api.get(f"/api/releases/{pk}/"),
    "open file": lambda api, pk: api.get(f"/api/releases/{pk}/files/inquire_queries_test.csv"),
    "labels": lambda api, pk: api.get(f"/api/releases/{pk}/files/judgments.csv"),
    "snapshot": lambda api, pk: api.get(f"/api/releases/{pk}/files/snapshot/pairs.parquet"),
    "archive": lambda api, pk: api.get(f"/api/releases/{pk}/archive"),
    "retry": lambda api, pk: api.post(f"/api/releases/{pk}/retry/"),
    "create": lambda api, pk: api.post("/api/releases/", {"name": "v2"}),
}
NOTHING = dict.fromkeys(ENDPOINTS, 403)
ALL = dict.fromkeys(ENDPOINTS, 200) | {"create": 403, "retry": 403}
EXPECTED = {
    "anonymous": dict.fromkeys(ENDPOINTS, 401),
    "annotator": NOTHING,
    "researcher": ALL | {"labels": 403, "snapshot": 403},
    "reviewer": ALL,
    # It is made, so there is nothing to try again.
    "admin": ALL | {"create": 201, "retry": 409},
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


def test_each_role_at_each_endpoint(release, api, subtests):
    for role, endpoint in product(EXPECTED, ENDPOINTS):
        with subtests.test(role=role, endpoint=endpoint):
            response = ENDPOINTS[endpoint](api(role), release.pk)
            assert response.status_code == EXPECTED[role][endpoint]
            if response.status_code >= 400:
                assert response["Content-Type"] == "application/problem+json"
                assert response.json()["status"] == response.status_code
                assert Release.objects.count() == 1


def test_a_release_cannot_be_changed_or_removed(release, api, subtests):
    roles = ("annotator", "researcher", "reviewer", "admin")
    for role, method in product(roles, ("put", "patch", "delete")):
        with subtests.test(role=role, method=method):
            response = getattr(api(role), method)(f"/api/releases/{release.pk}/", {"name": "v9"})
            assert response.status_code == (405 if role == "admin" else 403)
            assert Release.objects.get().name == "v1"


def test_a_release_says_what_it_holds(release, reviewer_api):
    (listed,) = reviewer_api.get("/api/releases/").json()["results"]
    body = reviewer_api.get(f"/api/releases/{release.pk}/").json()
    assert listed.items() <= body.items()
    assert set(body) - set(listed) == {"header", "difference", "progress"}
    assert (body["name"], body["state"], body["job"]) == ("v1", "done", release.job_id)
    assert (body["val_queries"], body["test_queries"]) == (0, 1)
    assert (body["positives"], body["judgments"]) == (1, 1)
    assert body["created_by"] is None
    assert body["files"] == release.file_list
    assert {entry["name"] for entry in body["files"]} > set(RELEASE_FILES)
    assert (body["version"], body["origin"], body["previous"], body["error"]) == (
        1, "made", None, "",
    )  # fmt: skip
    assert body["header"]["version"] == 1
    assert {step["state"] for step in body["progress"]} == {"done"}


def test_researchers_are_reported_the_files_that_they_may_have(release, researcher_api):
    body = researcher_api.get(f"/api/releases/{release.pk}/").json()
    names = {entry["name"] for entry in body["files"]}
    assert {entry["access"] for entry in body["files"]} == {"open"}
    assert {"manifest_open.json", "difference.md", "inquire_queries_test.csv"} <= names
    shown = {"judgments.csv", "inquire_annotations.csv", "snapshot/pairs.parquet", "manifest.json"}
    assert not names & shown
    assert body["positives"] is body["judgments"] is None
    assert body["archive"] == release.archive["open"]


def test_each_role_gets_an_archive_of_what_it_may_have(release, researcher_api, reviewer_api):
    for api, entries in (
        (reviewer_api, release.file_list),
        (researcher_api, [one for one in release.file_list if one["access"] == "open"]),
    ):
        shown = api.get(f"/api/releases/{release.pk}/").json()["archive"]
        response = api.get(f"/api/releases/{release.pk}/archive")
        data = b"".join(response.streaming_content)
        assert (len(data), hashlib.sha256(data).hexdigest()) == (shown["size"], shown["sha256"])
        assert response["Content-Disposition"] == f'attachment; filename="{shown["name"]}"'
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = {name.removeprefix("v1-v1/") for name in archive.namelist()}
            read = archive.read("v1-v1/manifest_open.json")
        assert names == {entry["name"] for entry in entries}
        assert read == (release.directory / "manifest_open.json").read_bytes()


def test_a_file_says_of_which_kind_it_is(release, reviewer_api):
    for name, expected in (
        ("manifest.json", "application/json"),
        ("difference.md", "text/markdown; charset=utf-8"),
        ("snapshot/pairs.parquet", "application/vnd.apache.parquet"),
    ):
        response = reviewer_api.get(f"/api/releases/{release.pk}/files/{name}")
        assert response["Content-Type"] == expected
        assert f'filename="{name.rpartition("/")[2]}"' in response["Content-Disposition"]
        assert b"".join(response.streaming_content) == (release.directory / name).read_bytes()


def test_a_download_that_was_cut_short_goes_on(release, reviewer_api):
    address = f"/api/releases/{release.pk}/archive"
    whole = reviewer_api.get(address)
    data = b"".join(whole.streaming_content)
    assert whole["Accept-Ranges"] == "bytes"
    rest = reviewer_api.get(address, HTTP_RANGE="bytes=1000-", HTTP_IF_RANGE=whole["ETag"])
    assert (rest.status_code, b"".join(rest.streaming_content)) == (206, data[1000:])
    assert rest["Content-Range"] == f"bytes 1000-{len(data) - 1}/{len(data)}"
    # The rest of another version would fit nothing.
    other = reviewer_api.get(address, HTTP_RANGE="bytes=1000-", HTTP_IF_RANGE='"1-1"')
    assert (other.status_code, b"".join(other.streaming_content)) == (200, data)


def test_a_lost_file_is_a_404(release, reviewer_api):
    (release.directory / "judgments.csv").unlink()
    assert reviewer_api.get(f"/api/releases/{release.pk}/files/judgments.csv").status_code == 404
    (release.directory / release.archive["name"]).unlink()
    assert reviewer_api.get(f"/api/releases/{release.pk}/archive").status_code == 404


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


def test_bad_names_are_refused_with_the_field_named(db, admin_api):
    Release.objects.create(name="INQUIRE", origin=Release.Origin.IMPORTED)
    services.release_create(name="half", created_by=None)
    for data, expected in (
        ({}, "This field is required."),
        ({"name": ""}, "This field may not be blank."),
        ({"name": "x" * 101}, "Ensure this field has no more than 100 characters."),
        ({"name": "INQUIRE"}, "'INQUIRE' is an imported benchmark; choose another name."),
        ({"name": "half"}, "Version 1 of 'half' is already being made."),
        ({"name": "a\u0007b"}, "The name holds characters that can't be printed."),
    ):
        response = admin_api.post("/api/releases/", data)
        assert response.status_code == 400
        assert response.json()["errors"] == [{"field": "name", "detail": expected}]
    assert Release.objects.count() == 2


def test_an_unknown_model_is_refused_with_the_field_named(release, admin_api):
    response = admin_api.post("/api/releases/", {"name": "v2", "rerank_model": "nothing"})
    assert response.status_code == 400
    expected = "No image is embedded with 'nothing'; known models: none."
    assert response.json()["errors"] == [{"field": "rerank_model", "detail": expected}]


def test_a_known_name_makes_its_next_version(release, admin_api):
    choices = {"name": "v1", "rerank_model": "", "include_images": True}
    body = admin_api.post("/api/releases/", choices).json()
    assert (body["version"], body["previous"]) == (2, release.pk)
    assert body["options"] == {"rerank_model": "", "include_images": True}


def test_an_admin_tries_a_failed_release_again(db, admin_api):
    failed = services.release_create(name="v1", created_by=None)
    Job.objects.filter(pk=failed.job_id).update(state="failed", error="The disk is full.")
    assert admin_api.get(f"/api/releases/{failed.pk}/").json()["error"] == "The disk is full."
    body = admin_api.post(f"/api/releases/{failed.pk}/retry/").json()
    assert (body["state"], body["error"], body["job"]) == ("queued", "", failed.job_id)


def test_what_is_not_there_is_a_404(release, admin_api):
    for path in (
        "999999/",
        "99999999999999999999999/",
        "99999999999999999999999/files/judgments.csv",
        "one/",
        "999999/files/judgments.csv",
        "{pk}/files/secret_key",
        "{pk}/files/..%2F..%2Fsecret_key",
        "{pk}/files/../../secret_key",
        "{pk}/files/snapshot",
        "{pk}/files/snapshot/../judgments.csv",
        "{pk}/files//judgments.csv",
        "999999/archive",
    ):
        response = admin_api.get("/api/releases/" + path.format(pk=release.pk))
        assert response.status_code == 404, path
