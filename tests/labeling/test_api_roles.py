"""Each role against each endpoint: works, stranger, read-only, wrong method."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from rest_framework.test import APIClient

from labeling.judging.models import Judgment
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from tests.labeling.conftest import FIRST_ID, make_images
from tests.labeling.judging import judge

ROLES = ("anonymous", "annotator", "reviewer", "admin")
NEW = {"text": "a newt", "category": "Species ID"}
CSV = (
    b"query_id,query_text,supercategory,category,iconic_group\n7,a newt,Species,Species ID,Birds\n"
)


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(3)


@pytest.fixture
def query(images, open_query) -> Query:
    return open_query()


@pytest.fixture
def clients(anonymous_api, annotator_api, reviewer_api, admin_api) -> dict[str, APIClient]:
    return dict(zip(ROLES, (anonymous_api, annotator_api, reviewer_api, admin_api), strict=True))


def judgments(*numbers: int) -> list[dict[str, Any]]:
    return [
        {
            "image": FIRST_ID + number,
            "relevance": "relevant",
            "client_id": str(uuid.uuid4()),
            "seconds": 1,
        }
        for number in numbers
    ]


def upload(client: APIClient) -> Any:
    file = SimpleUploadedFile("q.csv", CSV, content_type="text/csv")
    return client.post("/api/queries/import/", {"file": file}, format="multipart")


# What each role (anonymous, annotator, reviewer, admin) is answered for an open query.
ENDPOINTS: dict[str, tuple[Callable[[APIClient, str], Any], tuple[int, int, int, int]]] = {
    "list": (lambda api, at: api.get("/api/queries/"), (401, 200, 200, 200)),
    "create": (lambda api, at: api.post("/api/queries/", NEW), (401, 403, 403, 201)),
    "retrieve": (lambda api, at: api.get(at), (401, 200, 200, 200)),
    "write a field": (lambda api, at: api.patch(at, {"text": "a frog"}), (401, 403, 403, 200)),
    "write a field and hand in": (
        lambda api, at: api.patch(at, {"text": "a frog", "state": "submitted", "note": "done"}),
        (401, 403, 403, 200),
    ),
    "hand in": (
        lambda api, at: (
            api.post(at + "judgments/", judgments(0))
            and api.patch(at, {"state": "submitted", "note": "done"})
        ),
        (401, 200, 200, 200),
    ),
    "complete": (
        lambda api, at: (
            api.post(at + "judgments/", judgments(0))
            and api.patch(at, {"state": "complete", "note": "Enough."})
        ),
        (401, 403, 200, 200),
    ),
    "complete unjudged": (
        lambda api, at: api.patch(at, {"state": "complete", "note": "Enough."}),
        (401, 403, 409, 409),
    ),
    "reject": (
        lambda api, at: api.patch(at, {"state": "rejected", "reject_reason": "too_easy"}),
        (401, 403, 403, 200),
    ),
    "back to draft": (lambda api, at: api.patch(at, {"state": "draft"}), (401, 403, 403, 200)),
    "an empty change": (lambda api, at: api.patch(at, {}), (401, 403, 403, 200)),
    "delete": (lambda api, at: api.delete(at), (401, 403, 403, 204)),
    "candidates": (lambda api, at: api.get(at + "candidates/"), (401, 200, 200, 200)),
    "judge": (lambda api, at: api.post(at + "judgments/", judgments(0)), (401, 200, 200, 200)),
    "judgments": (lambda api, at: api.get(at + "judgments/"), (401, 200, 200, 200)),
    "extend": (lambda api, at: api.post(at + "extend/", {"count": 1}), (401, 200, 200, 200)),
    "refresh": (lambda api, at: api.post(at + "refresh/"), (401, 403, 403, 202)),
    "import": (lambda api, at: upload(api), (401, 403, 403, 200)),
    "from a search": (
        lambda api, at: api.post("/api/queries/from-search/", {"text": "a newt"}),
        (401, 403, 403, 201),
    ),
}


def test_each_role_against_each_endpoint(images, open_query, clients, settings, subtests):
    settings.CANDIDATE_DEPTH = 2
    query = open_query()
    for endpoint, (call, statuses) in ENDPOINTS.items():
        for (role, client), status in zip(clients.items(), statuses, strict=True):
            with subtests.test(endpoint=endpoint, role=role), transaction.atomic():
                answer = call(client, f"/api/queries/{query.pk}/")
                assert answer.status_code == status, answer.content
                if answer.status_code >= 400:
                    assert answer["Content-Type"] == "application/problem+json"
                    query.refresh_from_db()
                    assert (query.state, query.text) == ("open", "a toad")
                transaction.set_rollback(True)


def test_a_query_that_is_not_theirs_does_not_exist_for_an_annotator(
    query, admin, annotator_api, admin_api
):
    judge(query, admin, [0], "relevant")
    address = f"/api/queries/{query.pk}/"
    for state in ("rejected", "complete", "draft"):
        Query.objects.update(state=state, reject_reason="other" * (state == "rejected"))
        for path in ("", "candidates/", "judgments/"):
            assert annotator_api.get(address + path).status_code == 404
            assert admin_api.get(f"/api/queries/999999999999999999/{path}").status_code == 404
        for path in ("extend/", "refresh/"):
            assert annotator_api.post(address + path).status_code == 404
        assert annotator_api.patch(address, {"state": "submitted"}).status_code == 404
        assert annotator_api.delete(address).status_code == 404
        assert annotator_api.post(f"{address}judgments/", judgments(0)).status_code == 404
        assert annotator_api.get("/api/queries/").json()["results"] == []
    assert Judgment.objects.count() == 1


def test_an_annotator_reads_what_they_judged_for_after_it_is_closed(
    query, admin, annotator, annotator_api, other_annotator_api
):
    judge(query, annotator, [0], "relevant")
    query_transition(query=query, to_state="complete", by=admin, note="Enough.")
    address = f"/api/queries/{query.pk}/"
    body = annotator_api.get(address).json()
    assert (body["state"], body["can_label"], body["transitions"]) == ("complete", False, [])
    assert annotator_api.get(address + "candidates/").status_code == 200
    assert annotator_api.post(address + "extend/").status_code == 403
    assert annotator_api.patch(address, {"state": "open"}).status_code == 403
    [outcome] = annotator_api.post(address + "judgments/", judgments(1)).json()["results"]
    assert outcome["status"] == "refused"
    assert outcome["detail"] == "The query is complete, so it can't be labeled now."
    assert other_annotator_api.get(address).status_code == 404


def test_annotators_see_their_own_judgments_and_reviewers_all(
    query, annotator, other_annotator, annotator_api, reviewer_api
):
    judge(query, annotator, [0, 1], "relevant")
    judge(query, other_annotator, [0], "unsure")
    address = f"/api/queries/{query.pk}/judgments/"

    def seen(client: APIClient, **parameters: Any) -> list[tuple[str, int, str]]:
        results = client.get(address, parameters).json()["results"]
        return [(one["annotator"], one["rank"], one["relevance"]) for one in results]

    assert seen(annotator_api) == [("ann", 1, "relevant"), ("ann", 2, "relevant")]
    assert seen(annotator_api, annotator="otto") == []
    assert sorted(seen(reviewer_api)) == [
        ("ann", 1, "relevant"),
        ("ann", 2, "relevant"),
        ("otto", 1, "unsure"),
    ]
    assert seen(reviewer_api, relevance="unsure") == [("otto", 1, "unsure")]
    assert seen(reviewer_api, image=FIRST_ID + 1) == [("ann", 2, "relevant")]


def test_a_submitted_query_is_judged_by_reviewers_only(
    query, annotator, annotator_api, reviewer_api
):
    judge(query, annotator, [0], "relevant")
    query_transition(query=query, to_state="submitted", by=annotator, note="enough")
    address = f"/api/queries/{query.pk}/judgments/"
    statuses = [
        client.post(address, judgments(1)).json()["results"][0]["status"]
        for client in (annotator_api, reviewer_api)
    ]
    assert statuses == ["refused", "stored"]


def test_wrong_methods(query, admin_api):
    for method, path in (
        ("put", ""),
        ("post", ""),
        ("post", "candidates/"),
        ("put", "judgments/"),
        ("delete", "judgments/"),
        ("get", "extend/"),
        ("get", "refresh/"),
    ):
        answer = getattr(admin_api, method)(f"/api/queries/{query.pk}/{path}")
        assert answer.status_code == 405, (method, path)
        assert answer["Content-Type"] == "application/problem+json"
