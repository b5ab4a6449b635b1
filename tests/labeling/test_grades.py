"""Queries that ask for four grades: through the API, with their history, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from labeling.judging.models import Judgment
from labeling.lifecycle.services import QueryHasJudgments, query_update
from labeling.queries.models import Query
from tests.labeling.conftest import FIRST_ID, make_images


def send(api: APIClient, query: Query, image: int, relevance: str, **fields: Any) -> dict[str, Any]:
    item = {"image": FIRST_ID + image, "relevance": relevance, "client_id": f"c{fields}{image}"}
    answer = api.post(f"/api/queries/{query.pk}/judgments/", [item | fields], format="json")
    result: dict[str, Any] = answer.json()["results"][0]
    return result


def test_grades_through_the_api(toy_model, open_query, admin, annotator_api):
    make_images(6)
    query, plain = open_query(grades="partly"), open_query("a plain toad")
    reason = "Shows it in a wrong way"
    for _ in range(2):
        sent = send(annotator_api, query, 0, "relevant", grade=2, reason=reason)
    assert sent["status"] == "repeated"
    for image, relevance, grade in (
        (1, "relevant", 3),
        (2, "not_relevant", 1),
        (3, "unsure", None),
    ):
        assert send(annotator_api, query, image, relevance, grade=grade)["status"] == "stored"
    assert send(annotator_api, query, 1, "not_relevant", grade=0)["status"] == "stored"
    for of, image, relevance, fields, says in (
        (query, 4, "not_relevant", {"grade": 2}, "grade: partly is relevant for this query."),
        (query, 4, "unsure", {"grade": 1}, "grade: mostly not is not relevant for this query."),
        (query, 4, "relevant", {"grade": 4}, "less than or equal to 3"),
        (query, 4, "relevant", {"reason": "so"}, "A reason needs a grade."),
        (plain, 4, "relevant", {"grade": 3}, "grade: the query doesn't ask for grades."),
    ):
        refused = send(annotator_api, of, image, relevance, **fields)
        assert (refused["status"], refused["code"]) == ("refused", "invalid")
        assert says in refused["detail"]

    address = f"/api/queries/{query.pk}/"
    listed = annotator_api.get(f"{address}judgments/").json()["results"]
    assert [(one["grade"], one["reason"]) for one in listed] == [
        (2, reason), (0, ""), (1, ""), (None, ""),
    ]  # fmt: skip
    past = annotator_api.get(f"{address}history/", {"image": FIRST_ID + 1}).json()["results"]
    assert [(one["relevance"], one["grade"]) for one in past] == [
        ("relevant", 3), ("not_relevant", 0),
    ]  # fmt: skip
    outline = annotator_api.get(f"{address}outline/").json()
    assert (outline["relevance"], outline["grades"]) == ("rnnu--", "201---")
    changes = annotator_api.get(f"{address}changes/").json()["own"]
    assert [one["grade"] for one in changes] == [2, 1, None, 0]

    with pytest.raises(QueryHasJudgments):
        query_update(query=query, by=admin, grades="definitely")
    query_update(query=query, by=admin, guidelines="Toads.", grades="partly")
    Judgment.objects.update(grade=None)
    query_update(query=query, by=admin, grades="definitely")
    query.refresh_from_db()
    assert query.grades == "definitely"
