"""Releases through the API: every role at every endpoint, and what each answer holds."""

import hashlib
import io
import zipfile
from itertools import product

import pytest
from django.core.signals import request_finished
from django.test import RequestFactory
from waitress.buffers import ReadOnlyFileBasedBuffer

from core.jobs.models import Job
from core.jobs.services import job_slice_run
from releases.downloads import archive_response
from releases.making import services
from releases.models import Release
from releases.snapshot.release_files import RELEASE_FILES
from tests.releases.conftest import World, judge_maker, make_images
from tests.releases.toy import make_query

pytestmark = pytest.mark.django_db

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
ALL = dict.fromkeys(ENDPOINTS, 200) | {"create": 403, "retry": 403}
EXPECTED = {
    "annotator": dict.fromkeys(ENDPOINTS, 403),
    "researcher": ALL | {"labels": 403, "snapshot": 403},
    "reviewer": ALL,
    # It is made, so there is nothing to try again.
    "admin": ALL | {"create": 201, "retry": 409},
}


@pytest.fixture(scope="module")
def release(world: World) -> Release:
    """A release that a job made."""
    make_images()
    query = make_query(30, "two storks on a nest ")
    judge_maker()(query, 2, world.person("annotator"), "relevant", rank=1, seconds=1.5)
    begun = services.release_create(name="v1", created_by=None)
    job_slice_run(job_id=begun.job_id)
    return Release.objects.get(pk=begun.pk)


def test_each_role_at_each_endpoint(release, world, anonymous_api):
    apis = {role: world.api(role) for role in EXPECTED}
    for endpoint, ask in ENDPOINTS.items():
        assert ask(anonymous_api, release.pk).status_code == 401
        for role, api in apis.items():
            response = ask(api, release.pk)
            assert response.status_code == EXPECTED[role][endpoint], (role, endpoint)
            if response.status_code >= 400:
                assert response["Content-Type"] == "application/problem+json"
                assert response.json()["status"] == response.status_code


def test_a_release_cannot_be_changed_or_removed(release, world):
    for role, method in product(EXPECTED, ("put", "patch", "delete")):
        response = getattr(world.api(role), method)(f"/api/releases/{release.pk}/", {"name": "v9"})
        assert response.status_code == (405 if role == "admin" else 403)
    assert Release.objects.get().name == "v1"


def test_a_release_says_what_it_holds(release, world):
    api = world.api("reviewer")
    (listed,) = api.get("/api/releases/").json()["results"]
    body = api.get(f"/api/releases/{release.pk}/").json()
    assert listed.items() <= body.items()
    assert set(body) - set(listed) == {"header", "difference", "progress"}
    assert (body["name"], body["state"], body["job"]) == ("v1", "done", release.job_id)
    assert (body["val_queries"], body["test_queries"]) == (0, 1)
    assert (body["positives"], body["judgments"], body["created_by"]) == (1, 1, None)
    assert body["files"] == release.file_list
    assert {entry["name"] for entry in body["files"]} > set(RELEASE_FILES)
    assert (body["version"], body["origin"], body["previous"], body["error"]) == (
        1, "made", None, "",
    )  # fmt: skip
    assert {step["state"] for step in body["progress"]} == {"done"}


def test_researchers_are_told_the_files_that_they_may_have(release, world):
    body = world.api("researcher").get(f"/api/releases/{release.pk}/").json()
    names = {entry["name"] for entry in body["files"]}
    assert {entry["access"] for entry in body["files"]} == {"open"}
    assert {"manifest_open.json", "difference.md", "inquire_queries_test.csv"} <= names
    labels = {"judgments.csv", "inquire_annotations.csv", "snapshot/pairs.parquet", "manifest.json"}
    assert not names & labels
    assert body["positives"] is body["judgments"] is None
    assert body["archive"] == release.archive["open"]


def test_each_role_gets_an_archive_of_what_it_may_have(release, world):
    for role, entries in (
        ("reviewer", release.file_list),
        ("researcher", [one for one in release.file_list if one["access"] == "open"]),
    ):
        api = world.api(role)
        told = api.get(f"/api/releases/{release.pk}/").json()["archive"]
        response = api.get(f"/api/releases/{release.pk}/archive")
        data = b"".join(response.streaming_content)
        assert (len(data), hashlib.sha256(data).hexdigest()) == (told["size"], told["sha256"])
        assert response["Content-Disposition"] == f'attachment; filename="{told["name"]}"'
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = {name.removeprefix("v1-v1/") for name in archive.namelist()}
            read = archive.read("v1-v1/manifest_open.json")
        assert names == {entry["name"] for entry in entries}
        assert read == (release.directory / "manifest_open.json").read_bytes()


def test_a_file_is_a_download_of_the_exact_bytes_and_says_its_kind(release, world):
    api = world.api("reviewer")
    for name, expected in (
        ("manifest.json", "application/json"),
        ("difference.md", "text/markdown; charset=utf-8"),
        ("snapshot/pairs.parquet", "application/vnd.apache.parquet"),
        ("inquire_annotations.csv", "text/csv; charset=utf-8"),
    ):
        response = api.get(f"/api/releases/{release.pk}/files/{name}")
        assert response["Content-Type"] == expected
        file_name = name.rpartition("/")[2]
        assert response["Content-Disposition"] == f'attachment; filename="{file_name}"'
        assert b"".join(response.streaming_content) == (release.directory / name).read_bytes()


def test_a_download_that_was_cut_short_goes_on(release, world):
    api, address = world.api("reviewer"), f"/api/releases/{release.pk}/archive"
    whole = api.get(address)
    data = b"".join(whole.streaming_content)
    rest = api.get(address, HTTP_RANGE="bytes=1000-", HTTP_IF_RANGE=whole["ETag"])
    assert (rest.status_code, b"".join(rest.streaming_content)) == (206, data[1000:])
    assert rest["Content-Range"] == f"bytes 1000-{len(data) - 1}/{len(data)}"
    # The rest of another version would fit nothing.
    other = api.get(address, HTTP_RANGE="bytes=1000-", HTTP_IF_RANGE='"1-1"')
    assert (other.status_code, b"".join(other.streaming_content)) == (200, data)


def test_the_web_server_sends_a_range_by_itself(release, world, monkeypatch):
    """As Django hands it to waitress, which keeps a thread for what has no positions."""
    # The end of a request ends the test's connection too.
    monkeypatch.setattr(request_finished, "send", lambda **_: None)
    request = RequestFactory().get("/", HTTP_RANGE="bytes=1000-1999")
    request.user = world.person("reviewer")
    answer = archive_response(request, release)
    file = answer.file_to_stream
    file.close = answer.close
    sent = ReadOnlyFileBasedBuffer(file)
    assert sent.prepare(int(answer["Content-Length"])) == 1000
    assert sent.get() == (release.directory / "v1-v1.zip").read_bytes()[1000:2000]
    sent.close()
    with pytest.raises(ValueError, match="closed"):
        file.tell()


def test_an_admin_begins_the_next_version_and_a_job_makes_it(release, world):
    api = world.api("admin")
    choices = {"name": "v1", "rerank_model": "", "include_images": True}
    response = api.post("/api/releases/", choices)
    body = response.json()
    assert response["Location"].endswith(f"/api/releases/{body['id']}/")
    assert (body["version"], body["previous"], body["state"]) == (2, release.pk, "queued")
    assert (body["created_by"], body["files"]) == ("the-admin", [])
    assert body["options"] == {"rerank_model": "", "include_images": True}
    job = Job.objects.get(pk=body["job"])
    assert (job.kind, job.created_by) == ("export_release", world.person("admin"))
    assert api.get(f"/api/releases/{body['id']}/files/judgments.csv").status_code == 404
    job_slice_run(job_id=job.pk)
    assert api.get(f"/api/releases/{body['id']}/").json()["state"] == "done"
    # A lost file is a 404, too.
    made = Release.objects.get(pk=body["id"])
    (made.directory / "judgments.csv").unlink()
    (made.directory / made.archive["name"]).unlink()
    for lost in ("files/judgments.csv", "archive"):
        assert api.get(f"/api/releases/{made.pk}/{lost}").status_code == 404


def test_bad_names_and_models_are_refused_with_the_field_named(db, admin_api):
    Release.objects.create(name="INQUIRE", origin=Release.Origin.IMPORTED)
    services.release_create(name="half", created_by=None)
    for data, expected in (
        ({}, "This field is required."),
        ({"name": "x" * 101}, "Ensure this field has no more than 100 characters."),
        ({"name": "INQUIRE"}, "'INQUIRE' is an imported benchmark; choose another name."),
        ({"name": "half"}, "Version 1 of 'half' is already being made."),
    ):
        response = admin_api.post("/api/releases/", data)
        assert response.status_code == 400
        assert response.json()["errors"] == [{"field": "name", "detail": expected}]
    response = admin_api.post("/api/releases/", {"name": "v2", "rerank_model": "nothing"})
    expected = "No image is embedded with 'nothing'; known models: none."
    assert response.json()["errors"] == [{"field": "rerank_model", "detail": expected}]
    assert Release.objects.exclude(name="v1").count() == 2


def test_an_admin_tries_a_failed_release_again(db, admin_api):
    failed = services.release_create(name="bad", created_by=None)
    Job.objects.filter(pk=failed.job_id).update(state="failed", error="The disk is full.")
    assert admin_api.get(f"/api/releases/{failed.pk}/").json()["error"] == "The disk is full."
    body = admin_api.post(f"/api/releases/{failed.pk}/retry/").json()
    assert (body["state"], body["error"], body["job"]) == ("queued", "", failed.job_id)


def test_what_is_not_there_is_a_404(release, world):
    api = world.api("admin")
    for path in (
        "999999/",
        "99999999999999999999999/files/judgments.csv",
        "one/",
        "{pk}/files/secret_key",
        "{pk}/files/..%2F..%2Fsecret_key",
        "{pk}/files/../../secret_key",
        "{pk}/files/snapshot",
        "{pk}/files/snapshot/../judgments.csv",
        "{pk}/files//judgments.csv",
        "999999/archive",
    ):
        assert api.get("/api/releases/" + path.format(pk=release.pk)).status_code == 404, path
