"""Selected images for a query: its examples, and what annotators are to judge blindly."""

from __future__ import annotations

from typing import Any

import pytest

from core.access import at_least
from labeling.audits.selectors import audit_state
from labeling.blind.opinions import first_labels
from labeling.blind.release_audits import _positives_unseen
from labeling.blind.selectors import queries_waiting
from labeling.blind.services import blind_show
from labeling.judging.agreement import patterns
from labeling.judging.blind import PICKED
from labeling.judging.models import BlindItem, Judgment
from labeling.judging.progress import progress
from labeling.lifecycle.examples import MOST_PINNED
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query, QueryExample
from retrieval.browsing.actions import IMAGE_ACTIONS
from retrieval.corpus.models import Image
from retrieval.flags.services import image_withdraw
from tests.conftest import api_of, client_of
from tests.labeling.conftest import FIRST_ID, make_images
from tests.labeling.judging import item, judge, record

IMAGES = 60


@pytest.fixture
def query(toy_model: Any, open_query: Any, reviewer: Any, settings: Any) -> Query:
    """An open query with a list of 50 of the 60 images; the 59th image is withdrawn."""
    settings.CANDIDATE_DEPTH = 50
    made = make_images(IMAGES)
    image_withdraw(image=made[58], by=reviewer)
    return open_query()


def post(user: Any, key: str, query: Query, *numbers: int, **body: Any) -> Any:
    [found] = [one for one in IMAGE_ACTIONS if one.name == key]
    ids = [FIRST_ID + number for number in numbers]
    address = found.endpoint.format(query=query.pk)
    return api_of(user).post(address, {"ids": ids, **body}, format="json")


def skipped(answer: Any) -> dict[int, str]:
    return {one["id"] - FIRST_ID: one["why"] for one in answer.json()["skipped"]}


def test_the_actions_name_who_may_do_them(
    query: Query, researcher: Any, annotator: Any, reviewer: Any, admin: Any
) -> None:
    bodies = {
        "put-before": {},
        "examples": {"relevance": "relevant"},
        "flag": {"reason": "person"},
        "withdraw": {},
    }
    assert {one.name for one in IMAGE_ACTIONS} >= bodies.keys()
    for one in IMAGE_ACTIONS:
        for user in (researcher, annotator, reviewer, admin):
            status = post(user, one.name, query, 59, **bodies[one.name]).status_code
            assert (status == 200) == at_least(user, one.role), (one.name, user.role, status)


def test_images_become_examples_up_to_the_most(query: Query, admin: Any) -> None:
    first = post(admin, "examples", query, 0, 1, 58, 999, relevance="relevant", note="toads")
    assert first.json()["done"] == 2
    assert skipped(first) == {
        58: "The image is withdrawn from the corpus.",
        999: "There is no such image.",
    }
    again = post(admin, "examples", query, 0, 1, relevance="relevant", note="toads")
    assert (again.json()["done"], set(skipped(again))) == (0, {0, 1})
    other = post(admin, "examples", query, *range(1, 50), relevance="not_relevant")
    assert other.json()["done"] == MOST_PINNED - 1
    assert set(skipped(other)) == set(range(MOST_PINNED, 50))
    kept = dict(QueryExample.objects.filter(query=query).values_list("image", "relevant"))
    assert kept == {FIRST_ID + number: number == 0 for number in range(MOST_PINNED)}
    for relevance in ("unsure", "", None):
        answer = post(admin, "examples", query, 0, relevance=relevance)
        assert answer.status_code == 400, relevance


def test_picked_images_are_judged_blindly_and_counted_as_neither_ranked_nor_drawn(
    query: Query, annotator: Any, other_annotator: Any, reviewer: Any, admin: Any, settings: Any
) -> None:
    settings.STOP_STREAK, settings.MINIMUM_LABELS = 3, 0
    judge(query, annotator, [0], "relevant")
    answer = post(reviewer, "put-before", query, 0, 1, 2, 40, 55, 58, 999)
    assert (answer.json()["done"], set(skipped(answer))) == (4, {0, 58, 999})
    again = post(admin, "put-before", query, 1, 2, 40, 55)
    assert set(skipped(again).values()) == {"The image waits for a judgment already."}
    assert BlindItem.objects.count() == 4

    # Nothing tells annotators who asked, whence an image comes, or whether it is in the list.
    assert queries_waiting(PICKED, other_annotator) == [(query, 4)]
    api = api_of(other_annotator)
    shown = api.post(f"/api/queries/{query.pk}/further-images/draws/", {"count": 9}, format="json")
    assert {one["image"] - FIRST_ID for one in shown.json()["results"]} == {1, 2, 40, 55}
    assert {"rank", "score", "source"}.isdisjoint(shown.json()["results"][0])
    page = client_of(other_annotator).get(f"/queries/{query.pk}/further-images/")
    told = page.content + shown.content
    assert b"Further images" in told
    assert reviewer.username.encode() not in told

    state = audit_state(query)
    outcomes = record(
        query,
        other_annotator,
        *(item(number, "not_relevant", source="picked") for number in (1, 2, 40)),
        item(55, "relevant", source="picked"),
    )
    assert [one.status for one in outcomes] == ["stored"] * 4
    assert set(Judgment.objects.exclude(annotator=annotator).values_list("source", flat=True)) == {
        "picked"
    }
    # Streak, certificate, second opinions, agreement and the seeds of audits.
    own, whole = progress(query, annotator=other_annotator).stop, progress(query).stop
    assert (own.streak, own.prefix, whole.prefix, whole.streak) == (0, 0, 1, 0)
    after = audit_state(query)
    assert (after.drawn, after.found) == (state.drawn, state.found) == (0, 1)
    assert after.unjudged == state.unjudged - 3
    assert [row[0] - FIRST_ID for row in first_labels(query)] == [0]
    judge(query, annotator, [1, 2], "not_relevant")
    assert patterns(query=query) == []
    judge(query, annotator, [3], "relevant")
    picked = post(reviewer, "put-before", query, 4)
    assert picked.json()["done"] == 1
    blind_show(kind=PICKED, query=query, annotator=annotator, count=1)
    record(query, annotator, item(4, "relevant", source="picked"))
    assert [pk - FIRST_ID for pk in _positives_unseen(query, reviewer)] == [0, 3]


def test_drafts_and_rejected_queries_take_no_images(
    query: Query, new_query: Any, reviewer: Any, admin: Any
) -> None:
    rejected = query_transition(
        query=query, to_state="rejected", by=admin, reason="other", note="odd"
    )
    for one in (rejected, new_query("a newt")):
        answer = post(reviewer, "put-before", one, 1)
        assert answer.status_code == 409
        assert "nobody judges images for it" in answer.json()["detail"]
    assert Image.objects.count() == IMAGES
