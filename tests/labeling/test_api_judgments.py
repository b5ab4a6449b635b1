"""Candidates and judgments through the API: pages, items one by one, grades, extensions."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from labeling.judging.models import Judgment, JudgmentEvent
from labeling.lifecycle.services import QueryHasJudgments, query_update
from labeling.queries.models import Query
from tests.conftest import client_of
from tests.labeling.conftest import FIRST_ID, fields, make_images
from tests.labeling.judging import item, judge, record


@pytest.fixture
def query(toy_model, open_query) -> Query:
    """An open query over five images."""
    make_images(5)
    return open_query()


def test_bounds_of_a_page_of_candidates(query, admin_api):
    address = f"/api/queries/{query.pk}/candidates/"
    for name, value in (("start_rank", 0), ("start_rank", "x"), ("limit", 0), ("limit", 501)):
        answer = admin_api.get(address, {name: value})
        assert (answer.status_code, fields(answer)) == (400, [name])
    body = admin_api.get(address, {"start_rank": 6}).json()
    assert (body["results"], body["count"], body["next"]) == ([], 5, None)


def test_own_relevance_stands_beside_the_candidates(
    query, annotator, other_annotator, annotator_api
):
    judge(query, annotator, [1], "unsure")
    judge(query, other_annotator, [0], "relevant")
    results = annotator_api.get(f"/api/queries/{query.pk}/candidates/").json()["results"]
    assert [one["relevance"] for one in results] == [None, "unsure", None, None, None]


GOOD = {"image": FIRST_ID, "relevance": "relevant", "client_id": "c", "seconds": 1}


def test_a_bad_item_is_refused_and_the_others_are_stored(query, annotator_api):
    bad = [
        (3, "Invalid data. Expected a dictionary"),
        ({}, "image: This field is required."),
        (GOOD | {"relevance": "yes"}, "relevance:"),
        (GOOD | {"image": "x"}, "image:"),
        (GOOD | {"image": 2**63}, "image:"),
        (GOOD | {"seconds": -1}, "seconds:"),
        (GOOD | {"seconds": 3600.1}, "seconds:"),
        (GOOD | {"client_id": ""}, "client_id:"),
        (GOOD | {"source": "import"}, "source:"),
        (GOOD | {"expected": "yes"}, "expected:"),
        (GOOD | {"age": "old"}, "age:"),
        ({name: GOOD[name] for name in GOOD if name != "relevance"}, "relevance:"),
    ]
    good = GOOD | {"image": FIRST_ID + 1, "client_id": str(uuid.uuid4())}
    items = [*(one for one, _ in bad), good]
    answer = annotator_api.post(f"/api/queries/{query.pk}/judgments/", items)
    assert answer.status_code == 200
    *refused, stored = answer.json()["results"]
    for one, (_, detail) in zip(refused, bad, strict=True):
        assert (one["status"], one["code"]) == ("refused", "invalid")
        assert (one["relevance"], one["current"]) == (None, None)
        assert one["detail"].startswith(detail)
    assert (stored["status"], stored["client_id"]) == ("stored", good["client_id"])
    assert Judgment.objects.count() == 1


def test_a_body_that_is_no_short_list_is_malformed(query, annotator_api):
    address = f"/api/queries/{query.pk}/judgments/"
    for body in ({}, GOOD, "x", None, [GOOD] * 501):
        answer = annotator_api.post(address, body)
        assert answer.status_code == 400
        assert answer["Content-Type"] == "application/problem+json"
    for text in ("[{", f'[{{"image": {FIRST_ID}, "seconds": NaN}}]'):
        answer = annotator_api.post(address, text, content_type="application/json")
        assert answer.status_code == 400
    assert not Judgment.objects.exists()


def test_a_list_is_extended_on_demand(toy_model, open_query, annotator_api, settings):
    settings.CANDIDATE_DEPTH = 2
    make_images(5)
    address = f"/api/queries/{open_query().pk}/extend/"
    answer = annotator_api.post(address, {"count": 2}).json()
    assert (answer["added"], answer["list"]["size"], answer["list"]["total"]) == (2, 4, 5)
    assert annotator_api.post(address, {}).json()["added"] == 1
    answer = annotator_api.post(address)
    assert answer.status_code == 409
    assert "already holds every" in answer.json()["detail"]
    answer = annotator_api.post(address, {"count": 5001})
    assert (answer.status_code, fields(answer)) == (400, ["count"])


def sent(number: int, relevance: str | None, **given: Any) -> dict[str, Any]:
    return {
        "image": FIRST_ID + number,
        "relevance": relevance,
        "client_id": str(uuid.uuid4()),
    } | given


def test_every_item_is_answered_with_what_stands_after_it(query, annotator_api):
    address = f"/api/queries/{query.pk}/judgments/"
    items = [
        sent(0, "relevant", expected=None, seconds=2, age=60),
        sent(0, "unsure", expected=None),
        sent(0, None, expected="relevant", source="similar"),
        sent(99, "relevant"),
    ]
    answer = annotator_api.post(address, [*items, items[0]]).json()
    conflict = "It was changed elsewhere meanwhile: it is relevant now, and was unlabeled here."
    unlisted = "image: image 1100 is not in the query's candidate list."
    expected = [
        ("stored", "", "", "relevant", "relevant", 1),
        ("refused", "conflict", conflict, None, "relevant", None),
        ("stored", "", "", None, None, 1),
        ("refused", "not_in_list", unlisted, None, None, None),
        ("repeated", "", "", "relevant", None, 1),
    ]
    names = ("status", "code", "detail", "relevance", "current", "rank")
    assert answer["results"] == [
        {
            "client_id": one["client_id"],
            "image": one["image"],
            **dict(zip(names, told, strict=True)),
        }
        for one, told in zip([*items, items[0]], expected, strict=True)
    ]
    first, last = JudgmentEvent.objects.order_by("pk")
    assert answer["cursor"] == last.pk
    assert first.made_at - first.acted_at > last.made_at - last.acted_at
    assert (answer["progress"]["judged"], answer["progress"]["active_seconds"]) == (0, 2)
    stop = answer["progress"]["stop"]
    assert (stop["minimum"], stop["minimum_met"]) == (0, True)


def test_what_another_user_left_behind_is_not_stored_as_ones_own(
    query, annotator, annotator_api, other_annotator
):
    address = f"/api/queries/{query.pk}/judgments/"
    for sender in (str(other_annotator.pk), "", "x"):
        answer = annotator_api.post(address, [sent(0, "relevant")], headers={"X-Annotator": sender})
        assert (answer.status_code, answer["Content-Type"]) == (409, "application/problem+json")
    assert not Judgment.objects.exists()
    answer = annotator_api.post(
        address, [sent(0, "relevant")], headers={"X-Annotator": str(annotator.pk)}
    )
    assert answer.json()["results"][0]["status"] == "stored"


def test_a_judgment_takes_few_statements(query, annotator, django_assert_num_queries):
    judge(query, annotator, range(2), "relevant")
    client = client_of(annotator)
    address = f"/api/queries/{query.pk}/judgments/"
    # Session, user; begin, the query's lock, query with list, annotator's lock, its benchmark's
    # people and the annotator's part, client ids, images, judgments, events, commit; progress.
    for count in (1, 3):
        items = [sent(number, "unsure") for number in range(count)]
        with django_assert_num_queries(13):
            answer = client.post(address, items, content_type="application/json")
        assert [one["status"] for one in answer.json()["results"]] == ["stored"] * count


def test_the_history_of_an_image_is_everybodys_to_reviewers(
    query, annotator, other_annotator, annotator_api, reviewer_api
):
    record(query, annotator, item(0, "relevant", seconds=2), item(1, "relevant"))
    record(query, other_annotator, item(0, "unsure", source="similar"))
    record(query, annotator, item(0, None, seconds=0.5))
    address = f"/api/queries/{query.pk}/history/"
    acts = reviewer_api.get(address, {"image": FIRST_ID}).json()["results"]
    assert [
        tuple(act[name] for name in ("annotator", "previous", "relevance", "source", "seconds"))
        for act in acts
    ] == [
        ("ann", None, "relevant", "list", 2),
        ("otto", None, "unsure", "similar", 1),
        ("ann", "relevant", None, "list", 0.5),
    ]
    assert [act["rank"] for act in acts] == [1, 1, 1]
    first = JudgmentEvent.objects.earliest("pk")
    assert acts[0]["at"] == first.acted_at.isoformat().replace("+00:00", "Z")
    own = annotator_api.get(address, {"image": FIRST_ID}).json()["results"]
    assert own == [acts[0], acts[2]]
    assert annotator_api.get(address, {"image": 5}).json() == {"results": []}


def test_a_history_is_of_one_image_of_a_query_that_one_sees(query, new_query, annotator_api):
    address = f"/api/queries/{query.pk}/history/"
    for image in ("", "x", "-1", str(2**63)):
        answer = annotator_api.get(address, {"image": image})
        assert (answer.status_code, fields(answer)) == (400, ["image"])
    draft = new_query("a draft")
    answer = annotator_api.get(f"/api/queries/{draft.pk}/history/", {"image": FIRST_ID})
    assert answer.status_code == 404


def test_a_clock_that_jumps_changes_neither_labels_nor_their_order(query, annotator, monkeypatch):
    address = f"/api/queries/{query.pk}/"
    client = client_of(annotator)
    jump = timedelta()

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + jump

    monkeypatch.setattr("django.utils.timezone.datetime", Clock)
    seen = []
    # Right, a day fast, and two days slow after that.
    for days, relevance in ((0, "relevant"), (1, "unsure"), (-1, "not_relevant")):
        jump = timedelta(days=days)
        answer = client.post(f"{address}judgments/", [sent(0, relevance)], "application/json")
        seen.append(answer.json()["results"][0]["status"])
    assert seen == ["stored"] * 3
    history = client.get(f"{address}history/?image={FIRST_ID}").json()["results"]
    assert [one["relevance"] for one in history] == ["relevant", "unsure", "not_relevant"]
    found = client.get(f"{address}outline/").json()
    assert (found["relevance"], found["progress"]["judged"]) == ("n----", 1)
    [*_, last] = client.get(f"{address}changes/?cursor=0").json()["own"]
    assert last["relevance"] == "not_relevant"


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
    for of, image, relevance, given, says in (
        (query, 4, "not_relevant", {"grade": 2}, "grade: partly is relevant for this query."),
        (query, 4, "unsure", {"grade": 1}, "grade: mostly not is not relevant for this query."),
        (query, 4, "relevant", {"grade": 4}, "less than or equal to 3"),
        (query, 4, "relevant", {"reason": "so"}, "A reason needs a grade."),
        (plain, 4, "relevant", {"grade": 3}, "grade: the query doesn't ask for grades."),
    ):
        refused = send(annotator_api, of, image, relevance, **given)
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
