"""What allows to hand in a query: one rule or several, of the setting or its own."""

from __future__ import annotations

from typing import Any

import pytest

from labeling.audits.hand_in import hand_in_state
from labeling.audits.services import audit_draw
from labeling.certificates.bounds import AuditRound, more_without_hit
from labeling.judging.progress import progress
from labeling.lifecycle.services import query_create, query_transition
from labeling.queries.models import Query
from labeling.queries.transitions import TransitionRefused
from labeling.review.overview import overview_of_keys
from labeling.review.selectors import left_open
from retrieval.corpus.models import Image
from tests.labeling.conftest import FIRST_ID, fields, make_images
from tests.labeling.judging import item, judge, record

NO = "not_relevant"
BOTH = "streak and certificate:0.5"


@pytest.fixture
def images(toy_model, settings) -> list[Image]:
    settings.STOP_STREAK = 3
    return make_images(20)


@pytest.fixture
def query(images, open_query, annotator) -> Query:
    """Its streak is long enough; 2 are found and 15 unjudged."""
    query = open_query(hand_in_rule=BOTH)
    judge(query, annotator, range(2), "relevant")
    judge(query, annotator, range(2, 5), NO)
    return query


def audit(query: Query, annotator: Any) -> int:
    """Draw, and judge not relevant, until the rule is met; returns the number of draws."""
    drawn = 0
    while not hand_in_state(query, progress(query).stop).met:
        [image_id] = audit_draw(query=query, annotator=annotator, count=1).to_judge
        record(query, annotator, item(image_id - FIRST_ID, NO, source="audit"))
        drawn += 1
    return drawn


def test_a_streak_is_not_enough_where_a_certificate_is_asked_for(query, annotator):
    with pytest.raises(TransitionRefused) as refused:
        query_transition(query=query, to_state="submitted", by=annotator)
    assert str(refused.value) == (
        f"The stop rule “{BOTH}” isn't met: 11 % of 50 % recall certified. "
        "Continue labeling, or hand in with a note that says why you stop here."
    )
    planned = more_without_hit([AuditRound(2, 15, 0, 0)], found=2, target=0.5)
    assert audit(query, annotator) == planned
    query_transition(query=query, to_state="submitted", by=annotator)
    assert query.assignments.get().rule == "streak and certificate:0.5:0.95"


def test_the_certificate_is_the_querys_whoever_hands_in(query, annotator, other_annotator):
    audit(query, annotator)
    judge(query, other_annotator, [3], NO)  # a streak of their own they have not
    query_transition(query=query, to_state="submitted", by=other_annotator)
    assert query.assignments.get().rule == "streak and certificate:0.5:0.95"


def test_a_draw_that_nobody_judged_speaks_against_it(query, annotator, reviewer):
    audit(query, annotator)
    assert left_open(query) == []
    audit_draw(query=query, annotator=annotator, count=1)
    [point] = left_open(query)
    assert (point.kind, point.text.startswith(f"The stop rule “{BOTH}” isn't met: ")) == (
        "rule",
        True,
    )
    done = query_transition(query=query, to_state="complete", by=reviewer, note="Enough.")
    assert (done.left_open, done.completion_reason) == (point.text, "Enough.")


def test_the_setting_is_the_rule_of_queries_without_one(query, open_query, annotator, settings):
    settings.HAND_IN_RULE = "exhausted"
    other = open_query("a frog")
    judge(other, annotator, range(20), NO)
    judge(query, annotator, range(5, 20), NO)
    stops = [progress(one, annotator=annotator).stop for one in (query, other)]
    found = [hand_in_state(one, stop) for one, stop in zip((query, other), stops, strict=True)]
    assert [one.rule for one in found] == [BOTH, "exhausted"]
    # Judged whole, nothing can be missing.
    assert [one.met for one in found] == [True, True]


def test_the_api_tells_how_it_stands_and_the_audit_aims_at_it(query, annotator_api):
    address = f"/api/queries/{query.pk}/"
    told = annotator_api.get(f"{address}outline/").json()["hand_in"]
    assert told == annotator_api.get(address).json()["hand_in"]
    assert (told["rule"], told["met"], told["met_by"]) == (BOTH, False, "")
    [way] = told["ways"]
    assert not way["met"]
    streak, certificate = way["rules"]
    assert (streak["name"], streak["met"], streak["value"], streak["of"]) == ("streak", True, 3, 3)
    assert certificate == {
        "rule": "certificate:0.5:0.95",
        "name": "certificate",
        "title": "A certificate",
        "met": False,
        "value": pytest.approx(2 / 17),
        "of": 0.5,
        "sentence": "11 % of 50 % recall certified",
    }
    assert annotator_api.get(f"{address}audit/").json()["target"] == 0.5


def test_pages_call_a_streak_no_stop_then(query, annotator, clients):
    [row] = overview_of_keys([query.pk], user=annotator)
    assert (row.progress.stop.met, row.stop_met) == (True, False)
    assert "recall certified" in clients["annotator"].get(f"/queries/{query.pk}/").content.decode()
    audit(query, annotator)
    page = clients["annotator"].get(f"/queries/{query.pk}/").content.decode()
    assert "The stop rule is met: streak and certificate:0.5:0.95." in page


def test_a_query_gets_its_rule_by_form_and_api(query, admin, admin_api, clients):
    address = f"/api/queries/{query.pk}/"
    body = admin_api.patch(address, {"hand_in_rule": " Certificate:0.90  or exhausted"}).json()
    assert body["hand_in_rule"] == "certificate:0.9 or exhausted"
    answer = admin_api.patch(address, {"hand_in_rule": "luck"})
    assert (answer.status_code, fields(answer)) == (400, ["hand_in_rule"])
    assert "“luck” is not a stop rule." in answer.json()["errors"][0]["detail"]
    form = {"text": query.text, "category": query.category, "split": "val"}
    edit = f"/queries/{query.pk}/edit/"
    refused = clients["admin"].post(edit, form | {"hand_in_rule": "streak or"})
    assert "“streak or” is not a stop rule." in refused.content.decode()
    assert clients["admin"].post(edit, form | {"hand_in_rule": ""}).status_code == 302
    query.refresh_from_db()
    assert query.hand_in_rule == ""
    # A rule is chosen among the usual ones, or written.
    chosen = "streak and certificate:0.9 or exhausted"
    for sent, stored in (
        ({"rule_choice": chosen}, chosen),
        ({"rule_choice": "exhausted", "hand_in_rule": "streak"}, "exhausted"),
        ({"rule_choice": "other", "hand_in_rule": "certificate:0.80"}, "certificate:0.8"),
    ):
        assert clients["admin"].post(edit, form | sent).status_code == 302
        query.refresh_from_db()
        assert query.hand_in_rule == stored
        page = clients["admin"].get(edit)
        assert page.context["form"]["rule_choice"].value() == sent["rule_choice"]
        assert "<details open>" in page.content.decode()
    new = clients["admin"].get("/queries/new/").content.decode()
    assert "<details>" in new
    assert '<optgroup label="Behavior">' in new
    made = query_create(text="a newt", category="Species ID", created_by=admin)
    assert made.hand_in_rule == ""
