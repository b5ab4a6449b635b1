"""The admin site: the corpus is looked at and not changed, and large tables are listed quickly."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from core.jobs.services import job_create, job_item_error
from retrieval import admin_lists
from retrieval.corpus.models import Image
from retrieval.corpus.selectors import datasets
from retrieval.embedding.models import EmbeddingModel
from tests.conftest import client_of
from tests.retrieval.making import embed_rows, image_row

pytestmark = pytest.mark.django_db

IMAGES = "/admin/retrieval/image/"


@pytest.fixture
def staff(admin: Any) -> Client:
    admin.is_staff = admin.is_superuser = True
    admin.save()
    return client_of(admin)


@pytest.fixture
def images(animals: Any) -> list[Image]:
    bear = animals["Ursus arctos"]
    return [
        image_row(11, bear, dataset="a", source_id="7"),
        image_row(12, None, dataset="b", source_id="11"),
        image_row(13, bear, dataset="b", source_id="5"),
        image_row(14, None, dataset="c", source_id="x1"),
    ]


def test_the_corpus_is_looked_at_and_not_changed(
    staff: Client, annotator: Any, animals: Any, toy_model: EmbeddingModel
) -> None:
    embed_rows(toy_model, {1: [1, 0, 0]})
    job = job_create(kind="embed", params={"model": "toy"})
    pages = {
        "retrieval/species": animals["Ursus arctos"].pk,
        "retrieval/image": 1,
        "retrieval/embeddingmodel": toy_model.pk,
        "core/job": job.pk,
    }
    other = client_of(annotator)
    for page, pk in pages.items():
        assert staff.get(f"/admin/{page}/?q=a").status_code == 200
        assert staff.get(f"/admin/{page}/{pk}/change/").status_code == 200
        assert staff.post(f"/admin/{page}/{pk}/change/", {}).status_code == 403
        assert staff.get(f"/admin/{page}/add/").status_code == 403
        assert staff.post(f"/admin/{page}/{pk}/delete/", {"post": "yes"}).status_code == 403
        assert other.get(f"/admin/{page}/").status_code == 302


def listed(staff: Client, address: str, model: str = "image") -> list[int]:
    """The keys that a list shows, in its order."""
    answer = staff.get(address)
    assert answer.status_code == 200
    return [int(pk) for pk in re.findall(rf"/{model}/(\d+)/change/", answer.content.decode())]


def test_images_come_by_id_and_within_a_data_set_by_its_own_ids(
    staff: Client, images: list[Image]
) -> None:
    assert datasets() == ["a", "b", "c"]
    assert listed(staff, IMAGES) == [11, 12, 13, 14]
    assert listed(staff, f"{IMAGES}?dataset=b") == [12, 13]
    assert listed(staff, f"{IMAGES}?dataset=nix") == []
    assert "?dataset=c" in staff.get(IMAGES).content.decode()
    Image.objects.all().delete()
    assert datasets() == []


def test_a_search_of_images_means_ids_and_species(staff: Client, images: list[Image]) -> None:
    found = {
        text: listed(staff, f"{IMAGES}?q={text}")
        for text in ("13", "11", "x1", "Ursus arctos", "braunbar", "nothing at all", "9" * 30)
    }
    assert list(found.values()) == [[13], [11, 12], [14], [11, 13], [11, 13], [], []]


def test_a_list_ends_early_and_says_so(
    staff: Client, images: list[Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert b"Search for others" not in staff.get(IMAGES).content
    monkeypatch.setattr(admin_lists, "MOST_LISTED", 3)
    answer = staff.get(IMAGES)
    assert answer.context["cl"].result_count == 3
    assert "the first 3. Search for others." in answer.content.decode()
    assert b"Search for others" not in staff.get(f"{IMAGES}?q=13").content


def test_what_a_job_could_not_do_is_found_by_its_number(staff: Client) -> None:
    jobs = [job_create(kind="embed", params={"model": name}) for name in ("a", "b")]
    for job in jobs:
        job_item_error(job=job, item="image 1", message="broken")
    [error] = jobs[1].item_errors.all()
    address = "/admin/core/jobitemerror/"
    assert listed(staff, f"{address}?q={jobs[1].pk}", "jobitemerror") == [error.pk]
    assert listed(staff, f"{address}?q=image", "jobitemerror") == []
