"""Completing a query that leaves something open: it asks for a reason, and keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from labeling.queries.transitions import TransitionIncomplete
from labeling.review.selectors import left_open
from retrieval.corpus.models import Image
from tests.labeling.conftest import make_images
from tests.labeling.judging import judge


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(6)


@pytest.fixture
def query(images, open_query, annotator, other_annotator) -> Query:
    """Image 0 is relevant to all, 1 disputed, 2 and 3 unsure."""
    query = open_query()
    judge(query, annotator, [0, 1], "relevant")
    judge(query, annotator, [2, 3], "unsure")
    judge(query, other_annotator, [0], "relevant")
    judge(query, other_annotator, [1], "not_relevant")
    return query


def complete(query: Query, by: Any, note: str = "") -> Query:
    return query_transition(query=query, to_state="complete", by=by, note=note)


def told(query: Query) -> list[tuple[str, int]]:
    return [(point.kind, point.count) for point in left_open(query)]


def test_what_is_left_open_is_listed_and_takes_a_reason(query, reviewer, admin):
    assert told(query) == [("rule", 0), ("unsure", 2), ("disputed", 1)]
    with pytest.raises(TransitionIncomplete) as refused:
        complete(query, reviewer, note=" ")
    assert refused.value.field == "note"
    assert refused.value.messages[1:3] == ("2 images are unsure.", "1 image is disputed.")
    query = complete(query, reviewer, note="The corpus has no more.")
    assert query.completion_reason == "The corpus has no more."
    assert query.left_open.endswith("2 images are unsure. 1 image is disputed.")
    made = query.transitions.get(to_state="complete")
    assert (made.note, made.made_by) == ("The corpus has no more.", reviewer)
    # Opened again, the reason is gone.
    query = query_transition(query=query, to_state="open", by=admin)
    query.refresh_from_db()
    assert (query.left_open, query.completion_reason) == ("", "")


def test_nothing_left_open_takes_no_reason(query, reviewer, settings):
    judge(query, reviewer, [1, 2], "relevant")
    judge(query, reviewer, [3, 4, 5], "not_relevant")
    settings.STOP_STREAK = 3
    assert told(query) == []
    query = complete(query, reviewer, note="well done")
    assert (query.state, query.left_open, query.completion_reason) == ("complete", "", "")


def test_the_api_lists_it_unless_a_note_says_why(query, reviewer_api, annotator_api):
    address = f"/api/queries/{query.pk}/"
    points = reviewer_api.get(address).json()["left_open"]
    assert [(one["kind"], one["count"]) for one in points] == told(query)
    assert annotator_api.get(address).json()["left_open"] == []
    answer = reviewer_api.patch(address, {"state": "complete"})
    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == ["note"] * 4
    assert [error["detail"] for error in answer.json()["errors"]][:3] == [
        one["text"] for one in points
    ]
    body = reviewer_api.patch(address, {"state": "complete", "note": "No more."}).json()
    assert (body["state"], body["completion_reason"]) == ("complete", "No more.")


def test_the_page_asks_before_it_completes(clients, query):
    transition = f"/queries/{query.pk}/transition/"
    ask = f"/queries/{query.pk}/complete/"
    assert clients["annotator"].get(ask).status_code == 403
    assert clients["reviewer"].post(transition, {"state": "complete"})["Location"] == ask
    text = clients["reviewer"].get(ask).content.decode()
    listed = text[text.index("<ul data-left-open>") :].partition("</ul>")[0]
    assert listed.count("<li>") == 3
    assert f'<a href="/queries/{query.pk}/label/">' in listed
    for kind, shown in (("unsure", 2), ("disputed", 1)):
        link = f"/queries/{query.pk}/review/?kind={kind}"
        assert f'<a href="{link}">' in listed
        assert clients["reviewer"].get(link).status_code == 200
        assert len(clients["reviewer"].get(f"/api{link}").json()["results"]) == shown
    assert "Still labeling:</strong> ann, otto." in text
    done = clients["reviewer"].post(
        transition, {"state": "complete", "note": "No more."}, follow=True
    )
    assert "The query is complete now." in done.content.decode()
    assert "<strong>Reason:</strong> <bdi>No more.</bdi>" in done.content.decode()
    assert clients["reviewer"].get(ask).status_code == 302
