"""The page of releases, and their files, for each role."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from core.jobs.models import Job
from labeling.queries.models import Query
from releases.making.services import release_create, release_export, release_verify
from releases.models import Release
from retrieval.corpus.models import Image
from retrieval.datasets.selectors import texts_kept_since
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding
from tests.releases.conftest import World, judge_maker, make_images
from tests.releases.toy import make_query

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def release(world: World) -> Release:
    make_images()
    query = make_query(30, "two storks on a nest ")
    judge_maker()(query, 3, world.person("annotator"), "relevant")
    return release_export(name="v1", directory=world.folder / "v1", new=True)


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
    release: Release, world: World, role: str, refused: set[str]
) -> None:
    client = world.client(role)
    answers = {name: client.get(path).status_code for name, path in pages(release).items()}
    assert answers == {name: 403 if name in refused else 200 for name in answers}
    retry = f"/releases/{release.pk}/retry/"
    assert client.post(retry).status_code == (302 if role == "admin" else 403)
    assert client.get(retry).status_code == 405
    if role != "admin":
        assert client.post("/releases/", {"name": "v2"}).status_code == 403
    for path in pages(release).values():
        assert Client().get(path)["Location"].startswith("/login/")


def test_reviewers_fetch_the_files_as_they_were_made(release: Release, world: World) -> None:
    client = world.client("reviewer")
    assert release.name in client.get("/releases/").content.decode()
    address = f"/releases/{release.pk}/files/inquire_annotations.csv"
    assert address in client.get(f"/releases/{release.pk}/").content.decode()
    answer = client.get(address)
    assert b"".join(answer) == (release.directory / "inquire_annotations.csv").read_bytes()
    assert answer["Content-Disposition"].startswith("attachment")
    for name in ("secret_key", "..%2f..%2fsecret_key", "judgments.csv.bak"):
        assert client.get(f"/releases/{release.pk}/files/{name}").status_code == 404


def test_researchers_see_no_label_of_the_test_split(release: Release, world: World) -> None:
    client = world.client("researcher")
    page = client.get(f"/releases/{release.pk}/").content.decode()
    assert "files/inquire_queries_test.csv" in page
    assert "files/judgments.csv" not in page
    assert "files/snapshot/" not in page
    assert release.archive["open"]["sha256"] in page
    assert release.archive["sha256"] not in page
    assert "Make a release" not in client.get("/releases/").content.decode()


def test_admins_make_a_release_by_the_form(release: Release, world: World, settings: Any) -> None:
    settings.EMBEDDING_MODEL = "toy"
    model = embedding_model_get_or_create(name="toy", dimension=2)
    embedding_model_get_or_create(name="empty", dimension=2)
    now, image = timezone.now(), Image.objects.first()
    Embedding.objects.create(model=model, image=image, vector=[1, 0], created_at=now)
    client = world.client("admin")
    page = client.get("/releases/?name=v1")
    form = page.context["form"]
    assert form.fields["rerank_model"].choices == [("", "No fixed lists"), ("toy", "toy")]
    assert form.fields["rerank_model"].initial == "toy"
    assert b'<option value="v1">' in page.content
    assert b'name="name" value="v1"' in page.content
    answer = client.post("/releases/", {"name": "v1", "include_images": "on"})
    made = Release.objects.latest("pk")
    assert answer["Location"] == f"/releases/{made.pk}/"
    assert (str(made), made.created_by, made.state) == ("v1 v2", world.person("admin"), "queued")
    assert made.options == {"rerank_model": "", "include_images": True}
    page = client.post("/releases/", {"name": "v1"})
    assert page.context["form"].errors == {"name": ["Version 2 of 'v1' is already being made."]}
    assert Release.objects.count() == 2


def test_a_failed_release_says_why_and_admins_try_it_again(world: World) -> None:
    failed = release_create(name="bad", created_by=None)
    Job.objects.filter(pk=failed.job_id).update(state="failed", error="The disk is full.")
    address, admin = f"/releases/{failed.pk}/", world.client("admin")
    page = world.client("reviewer").get(address).content.decode()
    assert "The disk is full." in page
    assert "Try again" not in page
    assert "Try again" in admin.get(address).content.decode()
    assert admin.post(f"{address}retry/")["Location"] == address
    assert Release.objects.get(pk=failed.pk).state == "queued"
    page = admin.post(f"{address}retry/", follow=True).content.decode()
    assert "already being made" in page


def test_a_page_shows_what_changed_and_all_versions(release: Release, world: World) -> None:
    judge_maker()(Query.objects.get(), 4, world.person("reviewer"), "relevant")
    later = release_export(name="v1", directory=world.folder / "v2", new=True)
    page = world.client("reviewer").get(f"/releases/{later.pk}/").content.decode()
    assert "Judged pairs in 1 query that both versions have: 1 newly judged." in page
    assert f'<a href="/releases/{release.pk}/">Version 1</a>' in page
    assert '<strong aria-current="page">Version 2</strong>' in page


def test_steps_are_shown_while_a_release_is_made(world: World) -> None:
    waiting, reviewer = release_create(name="slow", created_by=None), world.client("reviewer")
    address = f"/releases/{waiting.pk}/"
    assert b"A worker starts it within seconds." in reviewer.get(address).content
    step = {"title": "Images", "state": "running", "done": 5, "total": 12000}
    Job.objects.filter(pk=waiting.job_id).update(
        state="running", result={"steps": [step]}, done=1, total=4
    )
    page = reviewer.get(address).content.decode()
    assert "5 of 12,000" in page
    assert "25 %" in page
    assert f'data-release="{waiting.pk}"' in page


def test_a_data_set_names_the_releases_with_its_images(release: Release, world: World) -> None:
    dataset = Image.objects.get(pk=3).dataset
    address = "/api/data-sets/releases/"
    [found] = world.api("admin").get(address, {"dataset": dataset}).json()["results"]
    assert (found["release"]["name"], found["license_read"], found["exact_locations"]) == (
        release.name,
        0,
        0,
    )
    images = found["images"]
    assert images >= 1
    since = texts_kept_since()
    assert since is not None
    earlier = {"created_at": since - timedelta(days=1), "license_text": ""}
    Image.objects.filter(pk=3).update(**earlier, license="CC BY")
    [found] = world.api("admin").get(address, {"dataset": dataset}).json()["results"]
    assert (found["images"], found["license_read"]) == (images, 1)
    page = world.client("admin").get(f"/data-sets/show/?dataset={dataset}").content.decode()
    assert f'<a href="/releases/{release.pk}/">{release}</a>' in page
    assert world.api("reviewer").get(address, {"dataset": dataset}).status_code == 403
    assert not release_verify(release=release)
