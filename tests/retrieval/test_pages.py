"""The pages of search, corpus and jobs, for each role."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from core.jobs.models import Job
from core.jobs.services import job_create, job_item_error
from retrieval.embedding.embedding_models import embedding_model_get_or_create
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


@pytest.mark.parametrize("path", ["/search/?text=a bear", "/corpus/"])
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
    assert offer in clients["admin"].get("/search/?text=a bear").content
    assert offer not in clients["annotator"].get("/search/?text=a bear").content


def test_a_search_hides_names_from_annotators(
    clients: dict[str, Client], corpus: Any, settings: Any
) -> None:
    settings.HIDE_SPECIES_NAMES = True
    assert b"Monarch" not in clients["annotator"].get("/search/?text=a bear").content
    assert b"Monarch" in clients["reviewer"].get("/search/?text=a bear").content


def test_the_corpus_page_counts_and_finds_species(clients: dict[str, Client], corpus: Any) -> None:
    page = clients["annotator"].get("/corpus/?species=monarc")
    assert page.context["counts"].images == 3
    listed = [(s.scientific_name, s.image_count) for s in page.context["species_page"]]
    assert listed[0] == ("Danaus plexippus", 1)


def test_admins_alone_start_an_embedding_job(clients: dict[str, Client], corpus: Any) -> None:
    for role in ("annotator", "reviewer"):
        assert clients[role].post("/corpus/", {"model": toy_model()}).status_code == 403
    assert not Job.objects.exists()
    answer = clients["admin"].post("/corpus/", {"model": toy_model()})
    job = Job.objects.get()
    assert (job.kind, answer["Location"]) == ("embed", f"/jobs/{job.pk}/")


def test_a_model_that_does_not_exist_is_named_on_the_page(
    clients: dict[str, Client], corpus: Any
) -> None:
    page = clients["admin"].post("/corpus/", {"model": "no-such-model"})
    assert "no-such-model" in page.context["form_error"]
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
        assert client.get("/search/", {"text": "a toad", "species": text}).status_code == 404
        assert client.post(reverse("query-open-many"), {"query": text}).status_code == 404
        form = {"text": "a toad", "species": text}
        assert client.post(reverse("query-from-search"), form).status_code == 404
        assert client.post(reverse("query-new"), form).status_code == 200  # its form says so
