"""The page of releases, and their files, for each role."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from benchmark.releases.models import Release
from benchmark.releases.services import release_create, release_export
from core.jobs.models import Job
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding
from tests.conftest import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def release(var_dir: Path, query: Any, judge: Any, annotator: Any, tmp_path: Path) -> Release:
    judge(query, 3, annotator, "relevant")
    return release_export(name="v1", directory=tmp_path / "v1", new=True)


def test_reviewers_and_admins_fetch_the_files_as_they_were_made(
    release: Release, reviewer: Any, admin: Any
) -> None:
    for user in (reviewer, admin):
        assert release.name in client_of(user).get("/releases/").content.decode()
        page = client_of(user).get(f"/releases/{release.pk}/").content.decode()
        assert f"/releases/{release.pk}/files/inquire_annotations.csv" in page
        answer = client_of(user).get(f"/releases/{release.pk}/files/inquire_annotations.csv")
        made = (release.directory / "inquire_annotations.csv").read_bytes()
        assert b"".join(answer) == made
        assert answer["Content-Disposition"].startswith("attachment")


def pages(release: Release) -> dict[str, str]:
    """The address of every page of releases."""
    base = f"/releases/{release.pk}"
    return {
        "list": "/releases/",
        "detail": f"{base}/",
        "open file": f"{base}/files/inquire_queries_test.csv",
        "labels": f"{base}/files/inquire_annotations.csv",
        "snapshot": f"{base}/files/snapshot/judgments.parquet",
        "archive": f"{base}/archive",
    }


@pytest.mark.parametrize(
    ("role", "refused"),
    [
        ("annotator", {"list", "detail", "open file", "labels", "snapshot", "archive"}),
        ("researcher", {"labels", "snapshot"}),
        ("reviewer", set()),
        ("admin", set()),
    ],
)
def test_each_role_at_each_page(
    release: Release, request: pytest.FixtureRequest, role: str, refused: set[str]
) -> None:
    client = client_of(request.getfixturevalue(role))
    answers = {name: client.get(path).status_code for name, path in pages(release).items()}
    assert answers == {name: 403 if name in refused else 200 for name in answers}
    retry = f"/releases/{release.pk}/retry/"
    assert client.post(retry).status_code == (302 if role == "admin" else 403)
    assert client.get(retry).status_code == 405


def test_strangers_must_log_in(release: Release) -> None:
    for path in pages(release).values():
        assert Client().get(path)["Location"].startswith("/login/")


def test_researchers_see_no_label_of_the_test_split(release: Release, researcher: Any) -> None:
    page = client_of(researcher).get(f"/releases/{release.pk}/").content.decode()
    assert "files/inquire_queries_test.csv" in page
    assert "files/judgments.csv" not in page
    assert "files/snapshot/" not in page
    assert release.archive["open"]["sha256"] in page
    assert release.archive["sha256"] not in page
    assert "Make a release" not in client_of(researcher).get("/releases/").content.decode()


@pytest.mark.parametrize("name", ["secret_key", "..%2f..%2fsecret_key", "judgments.csv.bak"])
def test_only_files_of_the_release_are_given_out(release: Release, admin: Any, name: str) -> None:
    assert client_of(admin).get(f"/releases/{release.pk}/files/{name}").status_code == 404


def test_admins_alone_make_a_release(
    var_dir: Path, researcher: Any, reviewer: Any, admin: Any
) -> None:
    for user in (researcher, reviewer):
        assert client_of(user).post("/releases/", {"name": "v1"}).status_code == 403
    assert not Release.objects.exists()
    answer = client_of(admin).post("/releases/", {"name": "v1", "include_images": "on"})
    made = Release.objects.get()
    assert answer["Location"] == f"/releases/{made.pk}/"
    assert (made.name, made.created_by, made.state) == ("v1", admin, "queued")
    assert made.options == {"rerank_model": "", "include_images": True}


def test_the_form_offers_known_names_and_models_with_embeddings(
    release: Release, admin: Any, images: Any, settings: Any
) -> None:
    settings.EMBEDDING_MODEL = "toy"
    model = embedding_model_get_or_create(name="toy", dimension=2)
    embedding_model_get_or_create(name="empty", dimension=2)
    now = timezone.now()
    Embedding.objects.create(model=model, image=images[0], vector=[1, 0], created_at=now)
    page = client_of(admin).get("/releases/?name=v1")
    form = page.context["form"]
    assert form.fields["rerank_model"].choices == [("", "No fixed lists"), ("toy", "toy")]
    assert form.fields["rerank_model"].initial == "toy"
    assert b'<option value="v1">' in page.content
    assert b'name="name" value="v1"' in page.content


def test_a_name_that_is_being_made_is_refused_in_words(release: Release, admin: Any) -> None:
    client = client_of(admin)
    client.post("/releases/", {"name": "v1"})
    page = client.post("/releases/", {"name": "v1"})
    assert page.status_code == 200
    assert page.context["form"].errors == {"name": ["Version 2 of 'v1' is already being made."]}
    assert Release.objects.count() == 2


def test_a_failed_release_says_why_and_admins_try_it_again(
    var_dir: Path, reviewer: Any, admin: Any
) -> None:
    failed = release_create(name="v1", created_by=None)
    Job.objects.filter(pk=failed.job_id).update(state="failed", error="The disk is full.")
    address = f"/releases/{failed.pk}/"
    assert "The disk is full." in client_of(reviewer).get(address).content.decode()
    assert "Try again" not in client_of(reviewer).get(address).content.decode()
    assert "Try again" in client_of(admin).get(address).content.decode()
    assert client_of(admin).post(f"{address}retry/")["Location"] == address
    assert Release.objects.get().state == "queued"
    page = client_of(admin).post(f"{address}retry/", follow=True)
    assert "already being made" in page.content.decode()


def test_a_page_shows_what_changed_and_all_versions(
    release: Release, query: Any, judge: Any, reviewer: Any, tmp_path: Path
) -> None:
    judge(query, 4, reviewer, "relevant")
    later = release_export(name="v1", directory=tmp_path / "v2", new=True)
    page = client_of(reviewer).get(f"/releases/{later.pk}/").content.decode()
    assert "Judged pairs in 1 query that both versions have: 1 newly judged." in page
    assert f'<a href="/releases/{release.pk}/">Version 1</a>' in page
    assert '<strong aria-current="page">Version 2</strong>' in page


def test_steps_are_shown_while_a_release_is_made(var_dir: Path, reviewer: Any) -> None:
    waiting = release_create(name="v1", created_by=None)
    address = f"/releases/{waiting.pk}/"
    assert b"A worker starts it within seconds." in client_of(reviewer).get(address).content
    step = {"title": "Images", "state": "running", "done": 5, "total": 12000}
    Job.objects.filter(pk=waiting.job_id).update(
        state="running", result={"steps": [step]}, done=1, total=4
    )
    page = client_of(reviewer).get(address).content.decode()
    assert "5 of 12,000" in page
    assert "25 %" in page
    assert f'data-release="{waiting.pk}"' in page
