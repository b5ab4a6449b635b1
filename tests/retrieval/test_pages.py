"""The pages of images, species and jobs, for each role."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from annotator.models import User
from core.jobs.models import Job
from core.jobs.services import job_create, job_item_error
from retrieval.corpus.models import Image
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.flags.services import image_withdraw
from tests.retrieval.making import embed_rows, image_row
from tests.toy_model import toy_model

pytestmark = pytest.mark.django_db


@pytest.fixture
def corpus(settings: Any, animals: Any) -> Any:
    """Three embedded images: two bears and a monarch between them in the order of a search."""
    settings.EMBEDDING_MODEL = toy_model()
    bear, monarch = animals["Ursus arctos"], animals["Danaus plexippus"]
    for number, species in enumerate([bear, monarch, bear], start=1):
        image_row(number, species)
    model = embedding_model_get_or_create(name=toy_model())
    embed_rows(model, {1: [1, 0], 2: [4, 3], 3: [0, 1]})
    return animals


@pytest.mark.parametrize("path", ["/corpus/?text=a bear", "/corpus/?view=species"])
def test_everybody_who_is_logged_in_sees_them(
    clients: dict[str, Client], corpus: Any, path: str
) -> None:
    for role in ("annotator", "reviewer", "admin"):
        assert clients[role].get(path).status_code == 200
    assert clients["anonymous"].get(path)["Location"].startswith("/login/")
    assert clients["annotator"].put(path).status_code == 405


def test_only_admins_are_offered_to_turn_a_search_into_a_query(
    clients: dict[str, Client], corpus: Any
) -> None:
    offer = b"Make this a query"
    assert offer in clients["admin"].get("/corpus/").content
    assert offer not in clients["annotator"].get("/corpus/").content


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("", ""),
        ("?text=a+bear&species=1&species=2", "?text=a+bear&species=1&species=2"),
        ("?like=1&text=", "?like=1"),
        ("?dataset=a+b&after=7", "?dataset=a+b"),
    ],
)
def test_addresses_of_the_search_lead_to_the_images(
    clients: dict[str, Client], before: str, now: str
) -> None:
    answer = clients["annotator"].get(f"/search/{before}")
    assert (answer.status_code, answer["Location"]) == (302, f"/corpus/{now}")


def test_the_corpus_page_counts_and_finds_species(clients: dict[str, Client], corpus: Any) -> None:
    page = clients["annotator"].get("/corpus/?view=species&name=monarc")
    assert page.context["counts"].images == 3
    listed = [(s.scientific_name, s.image_count) for s in page.context["species_page"]]
    assert listed[0] == ("Danaus plexippus", 1)
    assert "<h2>Jobs</h2>" not in page.content.decode()
    job_create(kind="embed", params={"model": toy_model()}, title="Embed it")
    assert "Embed it" in clients["admin"].get("/corpus/").content.decode()
    Job.objects.update(state="done")
    assert "Embed it" not in clients["admin"].get("/corpus/").content.decode()


def test_admins_alone_start_an_embedding_job(clients: dict[str, Client], corpus: Any) -> None:
    for role in ("annotator", "reviewer"):
        assert (
            clients[role].post("/models/", {"model": toy_model(), "action": "embed"}).status_code
            == 403
        )
    assert not Job.objects.exists()
    answer = clients["admin"].post("/models/", {"model": toy_model(), "action": "embed"})
    job = Job.objects.get()
    assert (job.kind, answer["Location"]) == ("embed", f"/jobs/{job.pk}/")


def test_a_model_that_does_not_exist_is_named_on_the_page(
    clients: dict[str, Client], corpus: Any
) -> None:
    page = clients["admin"].post("/models/", {"model": "no-such-model", "action": "embed"})
    assert "no-such-model" in page.context["problem"]
    assert not Job.objects.exists()


def test_a_job_page_shows_what_failed_to_those_who_may_see_it(
    clients: dict[str, Client], corpus: Any, admin: Any
) -> None:
    job = job_create(kind="embed", params={"model": toy_model()}, created_by=admin)
    job_item_error(job=job, item="image 7", message="It is truncated.")
    page = clients["admin"].get(f"/jobs/{job.pk}/")
    assert b"image 7" in page.content
    assert b"It is truncated." in page.content
    assert clients["annotator"].get(f"/jobs/{job.pk}/").status_code == 404
    assert clients["admin"].get(f"/jobs/{job.pk + 1}/").status_code == 404


def test_pages_do_not_find_what_is_no_key(clients: dict[str, Client]) -> None:
    client = clients["admin"]
    client.raise_request_exception = False
    for text in ("x", "-1", "²", "9" * 5000):
        assert client.get("/corpus/", {"text": "a toad", "species": text}).status_code == 404
        assert client.post(reverse("query-open-many"), {"query": text}).status_code == 404
        form = {"text": "a toad", "species": text}
        assert client.post(reverse("query-from-search"), form).status_code == 404
        assert client.post(reverse("query-new"), form).status_code == 200  # its form says so


def test_an_image_ranks_those_like_it(
    clients: dict[str, Client], corpus: Any, annotator_api: APIClient
) -> None:
    def shown(parameters: str) -> list[int]:
        return list(annotator_api.get(f"/api/images/matches/?{parameters}").json()["ids"])

    bear = corpus["Ursus arctos"].pk
    assert shown("like=1") == [2, 3]
    assert shown(f"like=3&species={bear}") == [1]
    assert shown(f"species={bear}") == [1, 3]
    image_withdraw(image=Image(pk=1), by=User.objects.get(role="admin"))
    assert shown(f"species={bear}") == [3]
    assert clients["annotator"].get("/corpus/?like=1").status_code == 404
    assert annotator_api.get("/api/images/matches/?like=1").status_code == 404
    for parameters, status in (("like=1", 404), ("", 400), ("like=3&text=a bear", 400)):
        assert annotator_api.get(f"/api/search/?{parameters}").status_code == status
    results = annotator_api.get("/api/search/?like=3").json()["results"]
    assert [one["image"] for one in results] == [2]


def test_images_of_a_data_set_and_of_species_come_page_by_page(
    annotator_api: APIClient, animals: Any
) -> None:
    bear, monarch = animals["Ursus arctos"].pk, animals["Danaus plexippus"].pk
    for number, species in enumerate(["Ursus arctos", "Danaus plexippus"] * 6, start=1):
        image_row(number, animals[species], dataset="odd" if number % 3 else "even")

    def walked(**parameters: Any) -> list[int]:
        ids: list[int] = []
        after = ""
        while True:
            page = annotator_api.get(
                "/api/images/", {"limit": 3, **parameters} | ({"after": after} if after else {})
            ).json()
            ids += [one["id"] for one in page["results"]]
            after = page["after"]
            if after is None:
                return ids

    assert walked() == list(range(1, 13))
    assert walked(species=[bear]) == [1, 3, 5, 7, 9, 11]
    assert walked(species=[bear, monarch]) == list(range(1, 13))
    of_dataset = Image.objects.filter(dataset="odd").order_by("dataset", "source_id")
    assert walked(dataset="odd") == [image.pk for image in of_dataset]
    assert walked(dataset="none") == []
    assert annotator_api.get(f"/api/images/?dataset=odd&species={bear}").status_code == 400
