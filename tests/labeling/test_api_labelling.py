"""Candidates and judgments through the API: pages, items one by one, extensions."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from labeling.models import Judgment, Query
from retrieval.models import Image
from tests.labeling.conftest import FIRST_ID, fields, make_images
from tests.labeling.judging import judge

MakeQuery = Callable[..., Query]


@pytest.fixture
def images(toy_model: Any) -> list[Image]:
    return make_images(5)


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"start_rank": 0}, "start_rank"),
        ({"start_rank": "x"}, "start_rank"),
        ({"limit": 0}, "limit"),
        ({"limit": 501}, "limit"),
    ],
)
def test_bounds_of_a_page_of_candidates(
    parameters: dict[str, Any],
    field: str,
    images: list[Image],
    open_query: MakeQuery,
    admin_api: APIClient,
) -> None:
    answer = admin_api.get(f"/api/queries/{open_query().pk}/candidates/", parameters)
    assert (answer.status_code, fields(answer)) == (400, [field])


def test_past_the_end_there_are_no_candidates(
    images: list[Image], open_query: MakeQuery, admin_api: APIClient
) -> None:
    address = f"/api/queries/{open_query().pk}/candidates/"
    body = admin_api.get(address, {"start_rank": 6}).json()
    assert (body["results"], body["count"], body["next"]) == ([], 5, None)


def test_own_relevance_stands_beside_the_candidates(
    images: list[Image],
    open_query: MakeQuery,
    annotator: Any,
    other_annotator: Any,
    annotator_api: APIClient,
) -> None:
    query = open_query()
    judge(query, annotator, [1], "unsure")
    judge(query, other_annotator, [0], "relevant")
    results = annotator_api.get(f"/api/queries/{query.pk}/candidates/").json()["results"]
    assert [one["relevance"] for one in results] == [None, "unsure", None, None, None]


GOOD = {"image": FIRST_ID, "relevance": "relevant", "client_id": "c", "seconds": 1}


@pytest.mark.parametrize(
    ("bad", "detail"),
    [
        (3, "Invalid data. Expected a dictionary"),
        ({}, "image: This field is required."),
        (GOOD | {"relevance": "yes"}, "relevance:"),
        (GOOD | {"image": "x"}, "image:"),
        (GOOD | {"image": 2**63}, "image:"),
        (GOOD | {"seconds": -1}, "seconds:"),
        (GOOD | {"seconds": 3601}, "seconds:"),
        (GOOD | {"client_id": ""}, "client_id:"),
        (GOOD | {"source": "import"}, "source:"),
        (GOOD | {"image": FIRST_ID + 99}, "image: image 1100 is not in"),
    ],
)
def test_a_bad_item_is_refused_and_the_others_are_stored(
    bad: Any, detail: str, images: list[Image], open_query: MakeQuery, annotator_api: APIClient
) -> None:
    good = GOOD | {"image": FIRST_ID + 1, "client_id": str(uuid.uuid4())}
    address = f"/api/queries/{open_query().pk}/judgments/"
    answer = annotator_api.post(address, [bad, good])
    assert answer.status_code == 200
    refused, stored = answer.json()["results"]
    assert (refused["status"], stored["status"]) == ("refused", "stored")
    assert refused["detail"].startswith(detail)
    assert stored["client_id"] == good["client_id"]
    assert Judgment.objects.count() == 1


@pytest.mark.parametrize("body", [{}, GOOD, "x", None, [GOOD] * 501], ids=str)
def test_a_body_that_is_no_short_list_is_malformed(
    body: Any, images: list[Image], open_query: MakeQuery, annotator_api: APIClient
) -> None:
    answer = annotator_api.post(f"/api/queries/{open_query().pk}/judgments/", body)
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert not Judgment.objects.exists()


def test_json_that_is_broken_or_not_finite_is_malformed(
    images: list[Image], open_query: MakeQuery, annotator_api: APIClient
) -> None:
    address = f"/api/queries/{open_query().pk}/judgments/"
    for body in ("[{", f'[{{"image": {FIRST_ID}, "seconds": NaN}}]'):
        answer = annotator_api.post(address, body, content_type="application/json")
        assert answer.status_code == 400


def test_a_list_is_extended_on_demand(
    images: list[Image], open_query: MakeQuery, annotator_api: APIClient, settings: Any
) -> None:
    settings.CANDIDATE_DEPTH = 2
    address = f"/api/queries/{open_query().pk}/extend/"
    answer = annotator_api.post(address, {"count": 2}).json()
    assert (answer["added"], answer["list"]["size"], answer["list"]["total"]) == (2, 4, 5)
    assert annotator_api.post(address, {}).json()["added"] == 1
    answer = annotator_api.post(address)
    assert answer.status_code == 409
    assert "already holds every" in answer.json()["detail"]
    answer = annotator_api.post(address, {"count": 5001})
    assert (answer.status_code, fields(answer)) == (400, ["count"])
