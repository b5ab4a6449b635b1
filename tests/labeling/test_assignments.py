"""Handing in one's part while others label on, and giving a query up."""

from __future__ import annotations

from typing import Any

import pytest

from labeling.judging.access import why_not
from labeling.judging.sources import JudgmentSource
from labeling.lifecycle.assignments import still_labeling
from labeling.lifecycle.imports import judgments_import
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from labeling.queries.transitions import TransitionIncomplete
from labeling.review.selectors import given_up
from retrieval.corpus.models import Image
from tests.labeling.conftest import FIRST_ID, fields, make_images
from tests.labeling.judging import item, judge, record


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(6)


@pytest.fixture
def query(images, open_query) -> Query:
    return open_query()


def hand_in(query: Query, by: Any, **fields: str) -> Query:
    return query_transition(query=query, to_state="submitted", by=by, **fields)


def test_others_label_on_and_the_last_hand_in_submits(query, annotator, other_annotator):
    judge(query, annotator, [0], "relevant")
    judge(query, other_annotator, [0], "relevant")
    assert still_labeling(query) == ["ann", "otto"]
    query = hand_in(query, annotator, note="Only one.")
    assert (query.state, still_labeling(query)) == ("open", ["otto"])
    judge(query, other_annotator, [1, 2], "relevant")
    refused = record(query, annotator, item(3, "relevant"))[0]
    assert (refused.status, refused.code) == ("refused", "closed")
    assert "You have handed in your part" in refused.detail
    query = hand_in(query, other_annotator, note="Enough.")
    assert (query.state, still_labeling(query)) == ("submitted", [])
    assert list(query.transitions.values_list("to_state", "note", "made_by"))[1:] == [
        ("open", "Only one.", annotator.pk),
        ("submitted", "Enough.", other_annotator.pk),
    ]
    assert query.judgments.count() == 4


def test_a_part_keeps_the_rule_that_was_met(query, annotator, other_annotator, settings):
    settings.STOP_STREAK = 2
    judge(query, annotator, [0, 1], "not_relevant")
    judge(query, other_annotator, range(6), "not_relevant")
    hand_in(query, annotator)
    hand_in(query, other_annotator)
    rules = query.assignments.order_by("annotator__username").values_list("rule", flat=True)
    assert list(rules) == ["streak", "exhausted"]


def test_a_part_is_resumed_while_the_query_is_open(query, annotator, other_annotator):
    judge(query, annotator, [0], "relevant")
    judge(query, other_annotator, [0], "relevant")
    hand_in(query, annotator, note="Only one.")
    assert why_not(annotator, query)
    # Once more it changes nothing.
    assert hand_in(query, annotator, note="Second.").state == "open"
    assert query.assignments.get().note == "Only one."
    assert not query.transitions.filter(note="Second.").exists()
    query = query_transition(query=query, to_state="open", by=annotator)
    assert still_labeling(query) == ["ann", "otto"]
    judge(query, annotator, [1], "relevant")
    hand_in(query, annotator, note="Two.")
    assert hand_in(query, other_annotator, note="Fine.").state == "submitted"


def test_a_reviewer_submits_whoever_still_labels_and_reopens_everybodys_part(
    query, annotator, other_annotator, reviewer
):
    judge(query, annotator, [0], "relevant")
    judge(query, other_annotator, [0], "relevant")
    hand_in(query, annotator, note="Only one.")
    query = hand_in(query, reviewer)
    assert query.state == "submitted"
    assert record(query, other_annotator, item(1, "relevant"))[0].code == "closed"
    query = query_transition(query=query, to_state="open", by=reviewer)
    assert query.assignments.count() == 0
    judge(query, annotator, [1], "relevant")
    judge(query, other_annotator, [1], "relevant")


def test_who_judges_first_after_a_hand_in_takes_part(
    query, annotator, other_annotator, reviewer, django_user_model
):
    third = django_user_model.objects.create_user("olga", password="x", role="annotator")
    judge(query, annotator, [0], "relevant")
    judge(query, other_annotator, [0], "relevant")
    hand_in(query, annotator, note="Only one.")
    judge(query, third, [0], "relevant")
    assert hand_in(query, other_annotator, note="Fine.").state == "open"
    assert hand_in(query, third, note="Fine.").state == "submitted"


def test_reviewers_imports_and_who_left_do_not_take_part(
    query, annotator, other_annotator, reviewer, django_user_model
):
    gone = django_user_model.objects.create_user("olga", password="x", role="annotator")
    judge(query, annotator, [0], "relevant")
    judge(query, reviewer, [0], "relevant")
    judge(query, gone, [0], "relevant")
    django_user_model.objects.filter(pk=gone.pk).update(is_active=False)
    rows = f"query_id,image_id,relevance\n{query.query_id},{FIRST_ID},relevant\n"
    judgments_import(data=rows.encode(), name="j.csv", annotator=other_annotator)
    assert query.judgments.get(annotator=other_annotator).source == JudgmentSource.IMPORT
    assert still_labeling(query) == ["ann"]
    assert hand_in(query, annotator, note="Fine.").state == "submitted"


def test_what_was_judged_before_the_end_of_a_part_arrives_after_it(
    query, annotator, other_annotator, reviewer
):
    judge(query, annotator, [0], "relevant")
    query = hand_in(query, annotator, note="Only one.")
    assert query.state == "submitted"
    # They had no connection, so that nobody knew that they took part.
    late, later = record(
        query, other_annotator, item(1, "relevant", age=3600), item(2, "relevant", age=0)
    )
    assert (late.status, later.code) == ("stored", "closed")
    own, after = record(query, annotator, item(3, "unsure", age=60), item(4, "unsure"))
    assert (own.status, after.code) == ("stored", "closed")
    query = query_transition(query=query, to_state="complete", by=reviewer, note="Enough.")
    assert record(query, annotator, item(4, "unsure", age=3600))[0].code == "closed"


def test_giving_up_ends_ones_part_alone_and_waits_for_a_reviewer(
    query, annotator, other_annotator, reviewer
):
    judge(query, annotator, [0], "relevant")
    judge(query, other_annotator, [0], "relevant")
    query = hand_in(query, annotator, give_up="too_easy")
    wish = given_up(query, reviewer)
    assert query.state == "open"
    assert wish is not None
    assert (wish.reason, wish.annotator) == ("too_easy", annotator)
    # The others go on labeling blind.
    assert given_up(query, other_annotator) is None
    judge(query, other_annotator, [1], "relevant")
    query_transition(query=query, to_state="open", by=annotator)
    assert given_up(query, reviewer) is None


def test_through_the_api(query, annotator, other_annotator, annotator_api, reviewer_api):
    address = f"/api/queries/{query.pk}/"
    judge(query, annotator, [0], "relevant")
    judge(query, other_annotator, [0], "relevant")
    body = annotator_api.patch(address, {"state": "submitted", "note": "Only one."}).json()
    assert (body["state"], body["can_label"], body["transitions"]) == ("open", False, ["open"])
    assert (body["assignment"]["rule"], body["assignment"]["note"]) == ("", "Only one.")
    assert body["still_labeling"] == ["otto"]
    [listed] = annotator_api.get("/api/queries/").json()["results"]
    assert (listed["state"], listed["can_label"]) == ("open", False)
    assert reviewer_api.get(address).json()["still_labeling"] == ["otto"]
    assert reviewer_api.get(address).json()["assignment"] is None
    standing = annotator_api.get(f"{address}changes/?cursor=0").json()["query"]
    assert standing == {"state": "open", "can_label": False}
    body = annotator_api.patch(address, {"state": "open"}).json()
    assert (body["can_label"], body["assignment"]) == (True, None)


def test_on_the_pages(clients, query, annotator, other_annotator):
    page = f"/queries/{query.pk}/"
    judge(query, annotator, [0], "relevant")
    judge(query, other_annotator, [0], "relevant")
    answer = clients["annotator"].post(
        f"{page}transition/", {"state": "submitted", "note": "Only one."}, follow=True
    )
    own = answer.content.decode()
    assert "Your part is handed in." in own
    assert "One other still labels it; then a reviewer looks at disagreements." in own
    assert ">Label</a>" not in own
    assert ">Resume</button>" in own
    assert "Give up" not in own
    assert clients["annotator"].get(f"{page}label/")["Location"] == page
    assert b"Handed in</span>" in clients["annotator"].get("/").content
    seen = clients["reviewer"].get(page).content.decode()
    assert "<strong>Still labeling:</strong> otto." in seen
    assert "Part handed in" in seen
    assert "otto" in clients["reviewer"].get(f"{page}review/").content.decode()
    own = clients["annotator"].post(f"{page}transition/", {"state": "open"}, follow=True)
    assert "Your part is open again." in own.content.decode()
    assert clients["annotator"].get(f"{page}label/").status_code == 200


def test_another_reason_is_told_in_a_note(query, annotator):
    with pytest.raises(TransitionIncomplete, match="A note that says why") as refused:
        query_transition(query=query, to_state="submitted", by=annotator, give_up="other", note=" ")
    assert refused.value.field == "note"
    query_transition(query=query, to_state="submitted", by=annotator, give_up="other", note="dull")
    assert query.transitions.get(to_state="submitted").note == "dull"


def test_a_query_that_is_not_open_is_not_given_up(query, annotator, admin):
    judge(query, admin, [0], "relevant")
    query_transition(query=query, to_state="complete", by=admin, note="Enough.")
    with pytest.raises(TransitionIncomplete):
        query_transition(query=query, to_state="open", by=admin, give_up="too_easy")
    assert given_up(query, annotator) is None


def test_the_wish_is_there_until_a_reviewer_decides(query, annotator, reviewer):
    query = query_transition(query=query, to_state="submitted", by=annotator, give_up="too_easy")
    assert (query.state, query.reject_reason) == ("submitted", "")
    wish = given_up(query, annotator)
    assert wish is not None
    assert (wish.reason, wish.note, wish.annotator) == ("too_easy", "", annotator)
    query = query_transition(query=query, to_state="open", by=reviewer)
    assert given_up(query, annotator) is None
    query = query_transition(query=query, to_state="submitted", by=reviewer)
    assert given_up(query, annotator) is None
    query = query_transition(query=query, to_state="rejected", by=reviewer, reason="too_easy")
    assert given_up(query, annotator) is None


def test_giving_up_through_the_api(query, annotator_api, reviewer_api, annotator):
    address = f"/api/queries/{query.pk}/"
    assert annotator_api.get(address).json()["given_up"] is None
    answer = annotator_api.patch(address, {"state": "submitted", "give_up": "other"})
    assert (answer.status_code, fields(answer)) == (400, ["note"])
    answer = annotator_api.patch(address, {"state": "submitted", "give_up": "dull"})
    assert (answer.status_code, fields(answer)) == (400, ["give_up"])
    answer = annotator_api.patch(address, {"give_up": "too_easy"})
    assert answer.status_code == 403
    answer = annotator_api.patch(address, {"state": "submitted", "reject_reason": "too_easy"})
    assert (answer.status_code, fields(answer)) == (400, ["reject_reason"])
    answer = annotator_api.patch(
        address, {"state": "submitted", "give_up": "unlabelable", "note": "Who can hear a photo?"}
    )
    assert answer.status_code == 200
    wish = reviewer_api.get(address).json()["given_up"]
    made = query.assignments.get().handed_in_at
    assert wish == {
        "by": "ann",
        "reason": "unlabelable",
        "note": "Who can hear a photo?",
        "at": made.isoformat().replace("+00:00", "Z"),
    }
    # Who gave it up without a judgment still sees what becomes of it.
    assert answer.json()["given_up"] == wish
    answer = reviewer_api.patch(address, {"state": "rejected", "reject_reason": "unlabelable"})
    assert (answer.json()["state"], answer.json()["given_up"]) == ("rejected", None)


def test_on_the_page_the_reviewer_rejects_with_the_same_reason(clients, query):
    page, transition = f"/queries/{query.pk}/", f"/queries/{query.pk}/transition/"
    assert b"data-given-up" not in clients["reviewer"].get(page).content
    asked = {"state": "submitted", "give_up": "not_comprehensive", "note": "Too many <toads>"}
    clients["annotator"].post(transition, asked)
    text = clients["annotator"].get(page).content.decode()
    assert "Given up: Can&#x27;t be labeled comprehensively." in text
    assert "Reject for this reason" not in text
    text = clients["reviewer"].get(page).content.decode()
    assert "Too many &lt;toads&gt;" in text
    assert "Reject for this reason" in text
    assert '<input type="hidden" name="reason" value="not_comprehensive">' in text
    clients["reviewer"].post(
        transition, {"state": "rejected", "reason": "not_comprehensive", "note": asked["note"]}
    )
    query.refresh_from_db()
    assert (query.state, query.reject_reason, query.reject_note) == (
        "rejected",
        "not_comprehensive",
        "Too many <toads>",
    )
