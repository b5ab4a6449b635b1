"""The whole list in short, and what is new since it was read."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from labeling.candidates.services import list_extend
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.judging.sources import JudgmentSource
from labeling.lifecycle.services import query_transition, query_update
from labeling.queries.models import Query
from labeling.studio.outline import MOST_EVENTS, changes_since, outline
from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.flags.models import ImageFlag
from tests.labeling.conftest import FIRST_ID, fields, make_images, make_species, run_jobs
from tests.labeling.judging import item, judge, record


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(8)


def withdraw(number: int, by: Any, *, restored: bool = False) -> None:
    now = timezone.now()
    back = {"restored_by": by, "restored_at": now} if restored else {}
    ImageWithdrawal.objects.create(
        image_id=FIRST_ID + number, withdrawn_by=by, withdrawn_at=now, **back
    )


def flag(number: int, by: Any, kind: str = "person", state: str = "open") -> None:
    ImageFlag.objects.create(
        image_id=FIRST_ID + number,
        kind=kind,
        raised_by=by,
        state=state,
        decided_at=None if state == "open" else timezone.now(),
    )


def outlined(api: APIClient, query: Query) -> Any:
    answer = api.get(f"/api/queries/{query.pk}/outline/")
    assert answer.status_code == 200
    return answer.json()


def changed(api: APIClient, query: Query, **parameters: int) -> Any:
    answer = api.get(f"/api/queries/{query.pk}/changes/", parameters)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_fresh_list_in_short(images, open_query, annotator, annotator_api):
    query = open_query()
    body = outlined(annotator_api, query)
    assert list(body) == [
        "annotator", "query", "list", "progress", "minimum_labels", "hand_in", "images", "scores",
        "relevance", "sources", "grades", "withdrawn", "flagged", "cursor",
    ]  # fmt: skip
    assert body["annotator"] == annotator.pk
    assert body["query"] == {"state": "open", "can_label": True}
    assert (body["list"]["state"], body["list"]["size"]) == ("ready", 8)
    assert (body["progress"]["judged"], body["progress"]["next_rank"]) == (0, 1)
    assert body["images"] == [FIRST_ID + n for n in range(8)]
    assert body["scores"] == [1.0, 0.9995, 0.999, 0.9985, 0.998, 0.9976, 0.9971, 0.9966]
    assert (body["relevance"], body["sources"], body["grades"]) == ("--------", "--------", "")
    assert (body["withdrawn"], body["flagged"], body["cursor"]) == ([], [], 0)


def test_own_labels_and_where_they_were_made(
    images, open_query, annotator, other_annotator, annotator_api, other_annotator_api
):
    query = open_query()
    record(
        query,
        annotator,
        item(0, "relevant"),
        item(1, "not_relevant"),
        item(2, "unsure"),
        item(4, "relevant", source="search"),
        item(6, "not_relevant", source="similar"),
        item(1, "relevant", source="similar"),  # a correction: it keeps its place in the list
        item(5, "relevant"),
        item(5, None),
    )
    judge(query, other_annotator, [3], "relevant")
    Judgment.objects.filter(query=query, image=FIRST_ID + 2).update(source=JudgmentSource.IMPORT)
    body = outlined(annotator_api, query)
    assert body["relevance"] == "rru-r-n-"
    assert body["sources"] == "lli-s-m-"
    own = JudgmentEvent.objects.filter(annotator=annotator)
    assert body["cursor"] == max(own.values_list("pk", flat=True))
    assert outlined(other_annotator_api, query)["relevance"] == "---r----"
    assert outlined(other_annotator_api, query)["sources"] == "---l----"


def test_withdrawn_and_flagged_ranks(images, open_query, reviewer, annotator, annotator_api):
    query = open_query()
    judge(query, annotator, [1], "relevant")
    withdraw(6, reviewer)
    withdraw(1, reviewer)
    withdraw(2, reviewer, restored=True)
    flag(7, annotator)
    flag(7, reviewer)
    flag(0, annotator, "duplicate")
    flag(3, annotator, state="cleared")
    body = outlined(annotator_api, query)
    assert (body["withdrawn"], body["flagged"]) == ([2, 7], [1, 8])
    assert body["images"][1] == FIRST_ID + 1  # a rank never moves
    assert body["relevance"] == "-r------"
    polled = changed(annotator_api, query, cursor=body["cursor"])
    assert (polled["withdrawn"], polled["flagged"]) == ([2, 7], [1, 8])


@pytest.mark.usefixtures("images")
def test_the_outline_of_a_list_that_is_not_there(new_query, admin, admin_api):
    draft = new_query()
    for state, can_label in (("none", False), ("building", True)):
        if state == "building":
            query_transition(query=draft, to_state="open", by=admin)
        body = outlined(admin_api, draft)
        assert (body["list"]["state"], body["query"]["can_label"]) == (state, can_label)
        assert (body["images"], body["scores"], body["relevance"]) == ([], [], "")
        assert (body["withdrawn"], body["flagged"], body["cursor"]) == ([], [], 0)
        polled = changed(admin_api, draft)
        assert polled["list"] == {"id": body["list"]["id"], "size": 0, "state": state}


def test_outline_and_changes_take_few_queries_whatever_the_length(
    open_query,
    toy_model,
    annotator,
    other_annotator,
    reviewer,
    annotator_api,
    django_assert_num_queries,
):
    make_images(300)
    query = open_query()
    judge(query, annotator, range(0, 300, 2), "not_relevant")
    judge(query, other_annotator, range(50), "relevant")
    for number in range(0, 300, 30):
        withdraw(number, reviewer)
        flag(number + 1, reviewer)
    query = Query.objects.select_related("current_list").get(pk=query.pk)
    with django_assert_num_queries(1):
        found = outline(query=query, user=annotator)
    assert len(found.images) == len(found.relevance) == 300
    for person, count in ((annotator, 3), (reviewer, 4)):
        with django_assert_num_queries(count):
            changes_since(query=query, user=person, cursor=0)
    # Each with one query for the token, and one for the annotator's part.
    with django_assert_num_queries(5):
        outlined(annotator_api, query)
    with django_assert_num_queries(6):
        changed(annotator_api, query, cursor=found.cursor)


def test_changes_are_ones_own_and_the_last_of_each_image(
    images, open_query, annotator, other_annotator, annotator_api
):
    query = open_query()
    judge(query, annotator, [0], "relevant")
    cursor = outlined(annotator_api, query)["cursor"]
    assert changed(annotator_api, query, cursor=cursor)["own"] == []
    record(
        query,
        annotator,
        item(3, "relevant"),
        item(2, "unsure", source="search"),
        item(3, "not_relevant", source="similar"),
        item(0, None),  # type: ignore[arg-type]
    )
    judge(query, other_annotator, [5], "relevant")
    body = changed(annotator_api, query, cursor=cursor)
    shown = [(one["image"], one["rank"], one["relevance"], one["source"]) for one in body["own"]]
    assert shown == [
        (FIRST_ID + 2, 3, "unsure", "search"),
        (FIRST_ID + 3, 4, "not_relevant", "similar"),
        (FIRST_ID, 1, None, "list"),
    ]
    own = JudgmentEvent.objects.filter(annotator=annotator)
    assert body["cursor"] == max(own.values_list("pk", flat=True))
    again = changed(annotator_api, query, cursor=body["cursor"])
    assert (again["own"], again["cursor"]) == ([], body["cursor"])
    assert len(changed(annotator_api, query)["own"]) == 3


def test_many_changes_come_in_parts(toy_model, open_query, annotator, annotator_api):
    make_images(MOST_EVENTS + 5)
    query = open_query()
    judge(query, annotator, range(MOST_EVENTS + 5), "not_relevant")
    first = changed(annotator_api, query)
    assert [one["rank"] for one in first["own"]] == list(range(1, MOST_EVENTS + 1))
    rest = changed(annotator_api, query, cursor=first["cursor"])
    assert [one["rank"] for one in rest["own"]] == list(range(MOST_EVENTS + 1, MOST_EVENTS + 6))


def test_changes_of_images_outside_the_list_have_no_rank(
    images, open_query, annotator, annotator_api, settings
):
    settings.CANDIDATE_DEPTH = 3
    query = open_query()
    record(query, annotator, item(6, "relevant", source="similar"))
    [own] = changed(annotator_api, query)["own"]
    assert own == {
        "image": FIRST_ID + 6,
        "rank": None,
        "relevance": "relevant",
        "source": "similar",
        "grade": None,
    }
    assert outlined(annotator_api, query)["relevance"] == "---"
    assert list_extend(candidate_list=query.current_list, by_count=4) == 4  # type: ignore[arg-type]
    body = outlined(annotator_api, query)
    assert (body["relevance"], body["sources"], body["list"]["size"]) == ("------r", "------m", 7)
    polled = changed(annotator_api, query)
    assert polled["list"] == {"id": query.current_list_id, "size": 7, "state": "ready"}
    assert polled["own"][0]["rank"] == 7


def test_a_new_list_shows_in_the_changes_with_its_own_ranks(
    toy_model, open_query, annotator, admin, annotator_api
):
    toad = make_species("Bufo bufo")
    make_images(2)
    make_images(2, first=2, species=toad)
    query = open_query()
    judge(query, annotator, [0, 3], "relevant")
    before = changed(annotator_api, query)
    assert [one["rank"] for one in before["own"]] == [1, 4]
    query_update(query=query, by=admin, species=[toad])
    run_jobs()
    after = changed(annotator_api, query)
    assert after["list"]["id"] != before["list"]["id"]
    assert after["list"]["size"] == 2
    assert [one["rank"] for one in after["own"]] == [None, 2]
    body = outlined(annotator_api, query)
    assert (body["images"], body["relevance"]) == ([FIRST_ID + 2, FIRST_ID + 3], "-r")


def test_others_are_counted_for_reviewers_and_nothing_else_is_told_of_them(
    images, open_query, annotator, other_annotator, reviewer, annotator_api, reviewer_api
):
    query = open_query()
    judge(query, annotator, [0], "relevant")
    judge(query, other_annotator, [0, 1, 2], "unsure")
    judge(query, reviewer, [0], "relevant")
    judge(open_query("a newt"), annotator, [1], "relevant")
    old = Judgment.objects.filter(query=query, annotator=other_annotator, image=FIRST_ID)
    old.update(updated_at=timezone.now() - timedelta(hours=30))
    long_ago = timezone.now() - timedelta(hours=25)
    Judgment.objects.filter(query=query, annotator=annotator).update(updated_at=long_ago)
    answer = reviewer_api.get(f"/api/queries/{query.pk}/changes/")
    [other] = answer.json()["others"]
    assert (other["annotator"], other["judged"]) == ("otto", 3)
    newest = Judgment.objects.filter(annotator=other_annotator).latest("updated_at").updated_at
    assert other["last"] == newest.isoformat().replace("+00:00", "Z")
    assert b"unsure" not in answer.content
    assert changed(annotator_api, query)["others"] == []


def test_a_cursor_is_a_number(images, open_query, annotator_api):
    address = f"/api/queries/{open_query().pk}/changes/"
    for cursor in ("x", "-1", "9223372036854775808", "1.5"):
        answer = annotator_api.get(address, {"cursor": cursor})
        assert (answer.status_code, fields(answer)) == (400, ["cursor"])
