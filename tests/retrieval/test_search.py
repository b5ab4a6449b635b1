"""How a search is done: exactly where that is quick, one at a time, and for so long at most."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, connections
from django.test import Client
from rest_framework.test import APIClient

from core.jobs.models import Job
from core.jobs.services import job_slice_run
from core.locks import lock_key
from labeling.candidates.models import CandidateList
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import EmbeddingModel
from retrieval.search.selectors import SearchMethod, search_images
from retrieval.search.turns import SearchBusy, SearchTooSlow, search_turn
from tests.retrieval.indexes import make_index
from tests.retrieval.making import embed_rows, image_row
from tests.toy_model import toy_model


@pytest.fixture
def model(db: None, settings: Any, animals: Any) -> EmbeddingModel:
    """Forty embedded images on a quarter circle, every fourth of the bear; no packed matrix."""
    settings.EMBEDDING_MODEL = toy_model()
    model = embedding_model_get_or_create(name=toy_model())
    bear = animals["Ursus arctos"]
    for number in range(1, 41):
        image_row(number, bear if number % 4 == 0 else None)
    embed_rows(model, {number: [41 - number, number] for number in range(1, 41)})
    return model


@pytest.fixture
def index(model: EmbeddingModel, settings: Any) -> EmbeddingModel:
    """The model with an index, which is used for any number of images."""
    make_index(model)
    settings.SEARCH_EXACT_IMAGES = 0
    return model


def found(**options: Any) -> tuple[SearchMethod, list[int]]:
    results = search_images(text="a bear", **{"limit": 5, **options})
    return results.method, [hit.image.pk for hit in results.hits]


def test_with_one_it_is_used_for_many_images_alone(
    index: EmbeddingModel, settings: Any, animals: Any
) -> None:
    bear = animals["Ursus arctos"].pk
    assert found() == (SearchMethod.INDEX, [1, 2, 3, 4, 5])
    assert found(species_ids=[bear]) == (SearchMethod.INDEX, [4, 8, 12, 16, 20])
    settings.SEARCH_EXACT_IMAGES = 10
    assert found(species_ids=[bear])[0] is SearchMethod.SCAN
    assert found()[0] is SearchMethod.INDEX
    settings.SEARCH_EXACT_IMAGES = 40
    assert found()[0] is SearchMethod.SCAN


def test_an_unfinished_index_answers_nothing(index: EmbeddingModel) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(%s)",
            [f"retrieval_embedding_{index.pk}_hnsw"],
        )
    assert found() == (SearchMethod.SCAN, [1, 2, 3, 4, 5])


def test_too_few_from_an_index_is_answered_exactly(
    model: EmbeddingModel, settings: Any, animals: Any
) -> None:
    settings.SEARCH_EXACT_IMAGES = 0
    monarch = animals["Danaus plexippus"]
    for number in range(1, 501):
        image_row(1000 + number, monarch if number > 490 else None)
    embed_rows(model, {1000 + number: [-number, 100] for number in range(1, 501)})
    make_index(model)
    assert found(species_ids=[monarch.pk])[0] is SearchMethod.INDEX
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL hnsw.max_scan_tuples = 1")
    assert found(species_ids=[monarch.pk]) == (SearchMethod.SCAN, list(range(1491, 1496)))


def test_the_api_says_how_exact_it_is(
    index: EmbeddingModel, annotator_api: APIClient, settings: Any
) -> None:
    body = annotator_api.get("/api/search/?text=a bear&limit=3").json()
    assert (body["method"], body["exact"], body["total"]) == ("index", False, 40)
    assert body["how"] == "approximate, by an index: some of the best may be missing"
    assert body["seconds"] > 0
    settings.SEARCH_EXACT_IMAGES = 100
    body = annotator_api.get("/api/search/?text=a bear&limit=3").json()
    assert (body["method"], body["exact"]) == ("scan", True)
    assert body["how"] == "exact, by a scan of the database"


def test_a_candidate_list_is_exact_whatever_index_there_is(
    index: EmbeddingModel, admin_api: APIClient
) -> None:
    query = {"text": "a bear", "category": "Species ID", "split": "test"}
    made = admin_api.post("/api/queries/", query).json()
    before = _statements_of_indexes(index)
    admin_api.patch(f"/api/queries/{made['id']}/", {"state": "open"})
    for job in Job.objects.filter(state__in=Job.UNFINISHED):
        job_slice_run(job_id=job.pk)
    ranked = CandidateList.objects.get(query=made["id"]).candidates.order_by("rank")
    assert [one.image_id for one in ranked] == list(range(1, 41))
    assert _statements_of_indexes(index) == before


def _statements_of_indexes(model: EmbeddingModel) -> int:
    """How often the index was used, the present transaction included."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_stat_get_xact_numscans(to_regclass(%s))",
            [f"retrieval_embedding_{model.pk}_hnsw"],
        )
        return int(cursor.fetchone()[0])


@pytest.mark.django_db
def test_a_search_that_takes_too_long_is_stopped(settings: Any) -> None:
    settings.SEARCH_TIMEOUT = 1
    with (
        pytest.raises(SearchTooSlow, match="longer than 1 seconds"),
        search_turn(),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT pg_sleep(30)")
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


@contextmanager
def another_search(person: int) -> Iterator[None]:
    """Another connection on which the person's search is going on."""
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [lock_key("search", person)])
        yield
    finally:
        other.close()


@pytest.mark.django_db
def test_a_person_has_one_search_at_a_time(settings: Any) -> None:
    settings.SEARCH_TIMEOUT = 1
    with another_search(7):
        with pytest.raises(SearchBusy), search_turn(person=7):
            pass
        with search_turn(person=8), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert cursor.fetchone() == (1,)


def test_both_are_told(
    model: EmbeddingModel, settings: Any, annotator: Any, annotator_api: APIClient
) -> None:
    settings.SEARCH_TIMEOUT = 1
    addresses = [f"/api/{name}/?text=a bear" for name in ("search", "images/matches")]
    with another_search(annotator.pk):
        answers = [annotator_api.get(address) for address in addresses]
    for answer in answers:
        assert answer.status_code == 429
        assert "Your previous search" in answer.json()["detail"]
        assert answer.headers["Retry-After"] == "2"
    assert [annotator_api.get(address).status_code for address in addresses] == [200, 200]


def test_the_corpus_page_shows_the_index(index: EmbeddingModel, clients: dict[str, Client]) -> None:
    shown = clients["annotator"].get("/corpus/").content.decode()
    assert "Approximate index (halfvec, " in shown
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass(%s)",
            [f"retrieval_embedding_{index.pk}_hnsw"],
        )
    assert "was left unfinished" in clients["annotator"].get("/corpus/").content.decode()
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX retrieval_embedding_{index.pk}_hnsw")
    assert "pproximate index" not in clients["annotator"].get("/corpus/").content.decode()


def test_a_text_that_is_not_encoded_in_time_is_explained(
    transactional_db: None, model: EmbeddingModel, settings: Any, annotator_api: APIClient
) -> None:
    settings.TEXT_PROCESS, settings.SEARCH_TIMEOUT = True, 0
    for address in ("/api/search/", "/api/images/matches/"):
        answer = annotator_api.get(f"{address}?text=a bear")
        assert answer.status_code == 503
        assert "The text could not be encoded in time" in answer.json()["detail"]


def test_who_has_left_waits_for_no_text(
    transactional_db: None, model: EmbeddingModel, settings: Any, annotator_api: APIClient
) -> None:
    settings.TEXT_PROCESS, settings.SEARCH_TIMEOUT = True, 110
    left = {"waitress.client_disconnected": lambda: True}
    answer = annotator_api.get("/api/images/matches/?text=a bear", **left)
    assert answer.status_code == 503
