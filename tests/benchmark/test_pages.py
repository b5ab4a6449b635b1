"""The page of releases, and their files, for each role."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from benchmark.models import Release
from benchmark.services import release_export
from tests.conftest import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def release(var_dir: Path, query: Any, judge: Any, annotator: Any, tmp_path: Path) -> Release:
    judge(query, 3, annotator, "relevant")
    return release_export(name="v1", directory=tmp_path / "v1")[0]


def test_reviewers_and_admins_fetch_the_files_as_they_were_made(
    release: Release, reviewer: Any, admin: Any
) -> None:
    for user in (reviewer, admin):
        assert b"inquire_annotations.csv" in client_of(user).get("/releases/").content
        answer = client_of(user).get(f"/releases/{release.pk}/files/inquire_annotations.csv")
        made = (release.directory / "inquire_annotations.csv").read_bytes()
        assert b"".join(answer) == made
        assert answer["Content-Disposition"].startswith("attachment")


def test_annotators_and_strangers_get_no_release(release: Release, annotator: Any) -> None:
    file = f"/releases/{release.pk}/files/inquire_annotations.csv"
    for path in ("/releases/", file):
        assert client_of(annotator).get(path).status_code == 403
        assert Client().get(path)["Location"].startswith("/login/")


@pytest.mark.parametrize("name", ["secret_key", "..%2f..%2fsecret_key", "judgments.csv.bak"])
def test_only_files_of_the_release_are_given_out(release: Release, admin: Any, name: str) -> None:
    assert client_of(admin).get(f"/releases/{release.pk}/files/{name}").status_code == 404


def test_admins_alone_make_a_release(var_dir: Path, reviewer: Any, admin: Any) -> None:
    assert client_of(reviewer).post("/releases/", {"name": "v1"}).status_code == 403
    assert not Release.objects.exists()
    answer = client_of(admin).post("/releases/", {"name": "v1"})
    assert answer["Location"] == "/releases/"
    made = Release.objects.get()
    assert (made.name, made.created_by, made.state) == ("v1", admin, "queued")


def test_a_name_that_is_taken_is_refused_in_words(release: Release, admin: Any) -> None:
    page = client_of(admin).post("/releases/", {"name": "v1"})
    assert page.status_code == 200
    assert page.context["form_error"]
    assert Release.objects.count() == 1
