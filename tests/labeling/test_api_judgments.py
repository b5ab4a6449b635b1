"""Candidates and judgments through the API: pages, items one by one, extensions."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest

from labeling.judging.models import Judgment, JudgmentEvent
from labeling.lifecycle.services import query_transition
from retrieval.corpus.models import Image
from tests.conftest import client_of
from tests.labeling.conftest import FIRST_ID, fields, make_images
from tests.labeling.judging import item, judge, record


@pytest.fixture
def images(toy_model) -> list[Image]:
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
def test_bounds_of_a_page_of_candidates(parameters, field, images, open_query, admin_api):
    answer = admin_api.get(f"/api/queries/{open_query().pk}/candidates/", parameters)
    assert (answer.status_code, fields(answer)) == (400, [field])


def test_past_the_end_there_are_no_candidates(images, open_query, admin_api):
    address = f"/api/queries/{open_query().pk}/candidates/"
    body = admin_api.get(address, {"start_rank": 6}).json()
    assert (body["results"], body["count"], body["next"]) == ([], 5, None)


def test_own_relevance_stands_beside_the_candidates(
    images, open_query, annotator, other_annotator, annotator_api
):
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
        (GOOD | {"seconds": 3600.1}, "seconds:"),
        (GOOD | {"client_id": ""}, "client_id:"),
        (GOOD | {"source": "import"}, "source:"),
        (GOOD | {"expected": "yes"}, "expected:"),
        (GOOD | {"age": "old"}, "age:"),
        ({name: GOOD[name] for name in GOOD if name != "relevance"}, "relevance:"),
    ],
)
def test_a_bad_item_is_refused_and_the_others_are_stored(
    bad, detail, images, open_query, annotator_api
):
    good = GOOD | {"image": FIRST_ID + 1, "client_id": str(uuid.uuid4())}
    address = f"/api/queries/{open_query().pk}/judgments/"
    answer = annotator_api.post(address, [bad, good])
    assert answer.status_code == 200
    refused, stored = answer.json()["results"]
    assert (refused["status"], stored["status"]) == ("refused", "stored")
    assert (refused["code"], refused["relevance"], refused["current"]) == ("invalid", None, None)
    assert refused["detail"].startswith(detail)
    assert stored["client_id"] == good["client_id"]
    assert Judgment.objects.count() == 1


@pytest.mark.parametrize("body", [{}, GOOD, "x", None, [GOOD] * 501], ids=str)
def test_a_body_that_is_no_short_list_is_malformed(body, images, open_query, annotator_api):
    answer = annotator_api.post(f"/api/queries/{open_query().pk}/judgments/", body)
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert not Judgment.objects.exists()


def test_json_that_is_broken_or_not_finite_is_malformed(images, open_query, annotator_api):
    address = f"/api/queries/{open_query().pk}/judgments/"
    for body in ("[{", f'[{{"image": {FIRST_ID}, "seconds": NaN}}]'):
        answer = annotator_api.post(address, body, content_type="application/json")
        assert answer.status_code == 400


def test_a_list_is_extended_on_demand(images, open_query, annotator_api, settings):
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


def sent(number: int, relevance: str | None, **given: Any) -> dict[str, Any]:
    return {
        "image": FIRST_ID + number,
        "relevance": relevance,
        "client_id": str(uuid.uuid4()),
    } | given


def test_every_item_is_answered_with_what_stands_after_it(images, open_query, annotator_api):
    address = f"/api/queries/{open_query().pk}/judgments/"
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


def test_a_closed_query_says_so(images, open_query, annotator, annotator_api, admin):
    query = open_query()
    judge(query, annotator, [0], "relevant")
    query_transition(query=query, to_state="complete", by=admin, note="Enough.")
    [result] = annotator_api.post(
        f"/api/queries/{query.pk}/judgments/", [sent(1, "relevant")]
    ).json()["results"]
    assert (result["status"], result["code"]) == ("refused", "closed")
    assert result["detail"] == "The query is complete, so it can't be labeled now."


def test_a_query_that_one_does_not_see_takes_nothing(
    images, open_query, new_query, annotator_api, admin
):
    done = open_query()
    judge(done, admin, [0], "relevant")
    query_transition(query=done, to_state="complete", by=admin, note="Enough.")
    for pk in (done.pk, new_query("a draft").pk, 10**9):
        answer = annotator_api.post(f"/api/queries/{pk}/judgments/", [sent(1, "relevant")])
        assert answer.status_code == 404
    assert Judgment.objects.count() == 1


def test_what_another_user_left_behind_is_not_stored_as_ones_own(
    images, open_query, annotator, annotator_api, other_annotator
):
    address = f"/api/queries/{open_query().pk}/judgments/"
    for sender in (str(other_annotator.pk), "", "x"):
        answer = annotator_api.post(address, [sent(0, "relevant")], headers={"X-Annotator": sender})
        assert (answer.status_code, answer["Content-Type"]) == (409, "application/problem+json")
    assert not Judgment.objects.exists()
    answer = annotator_api.post(
        address, [sent(0, "relevant")], headers={"X-Annotator": str(annotator.pk)}
    )
    assert answer.json()["results"][0]["status"] == "stored"


def test_a_judgment_takes_few_statements(images, open_query, annotator, django_assert_num_queries):
    query = open_query()
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
    images, open_query, annotator, other_annotator, annotator_api, reviewer_api
):
    query = open_query()
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


def test_a_history_is_of_one_image_of_a_query_that_one_sees(
    images, open_query, new_query, annotator_api
):
    address = f"/api/queries/{open_query().pk}/history/"
    for image in ("", "x", "-1", str(2**63)):
        answer = annotator_api.get(address, {"image": image})
        assert (answer.status_code, fields(answer)) == (400, ["image"])
    draft = new_query("a draft")
    answer = annotator_api.get(f"/api/queries/{draft.pk}/history/", {"image": FIRST_ID})
    assert answer.status_code == 404


def test_a_clock_that_jumps_changes_neither_labels_nor_their_order(
    images, open_query, annotator, monkeypatch
):
    address = f"/api/queries/{open_query().pk}/"
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
