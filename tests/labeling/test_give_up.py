"""Giving a query up: handed in with the wish to have it rejected."""

from __future__ import annotations

import pytest

from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from labeling.queries.transitions import TransitionIncomplete
from labeling.review.selectors import given_up
from retrieval.corpus.models import Image
from tests.labeling.conftest import fields, make_images
from tests.labeling.judging import judge


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(3)


@pytest.fixture
def query(images, open_query) -> Query:
    return open_query()


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


def test_through_the_api(query, annotator_api, reviewer_api, annotator):
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
