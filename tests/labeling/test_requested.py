"""Images that runs request: judged blindly, by anybody, in a complete query too."""

from __future__ import annotations

from typing import Any

import pytest

from labeling.blind.requests import images_request
from labeling.blind.selectors import queries_waiting
from labeling.blind.services import blind_show
from labeling.judging.blind import REQUESTED
from labeling.judging.models import BlindItem, Judgment
from labeling.lifecycle.assignments import still_labeling
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from retrieval.flags.services import image_withdraw
from tests.conftest import api_of, client_of
from tests.labeling.conftest import FIRST_ID, make_images
from tests.labeling.judging import item, judge, record

IMAGES, JUDGED = 30, 10
SECRET = "run 7: the secret run"


@pytest.fixture
def query(toy_model, open_query, annotator, admin) -> Query:
    """A complete query, of whose images one person has judged the first."""
    make_images(IMAGES)
    query = open_query()
    judge(query, annotator, range(JUDGED), "relevant")
    for state in ("submitted", "complete"):
        query = query_transition(query=query, to_state=state, by=admin, note="enough")
    return query


def ask(query: Query, by: Any, *numbers: int) -> int:
    wanted = {query.pk: [FIRST_ID + number for number in numbers]}
    return len(images_request(wanted=wanted, requested_for=SECRET, by=by))


def of_run(query: Query, one: Any, number: int, relevance: str | None) -> str:
    [outcome] = record(query, one, item(number, relevance, source="run"))
    return str(outcome.code or outcome.status)


def test_a_complete_query_has_its_requested_images_judged_by_anybody(
    query, annotator, other_annotator, reviewer, researcher
):
    address = f"/api/queries/{query.pk}/requested/"
    api = api_of(other_annotator)
    assert api.get(address).status_code == 404
    withdrawn = Image.objects.get(pk=FIRST_ID + 14)
    image_withdraw(image=withdrawn, by=reviewer, note="a person")
    assert ask(query, reviewer, 3, 11, 12, 13, 14, 999) == 3
    assert ask(query, reviewer, 12, 13, 15) == 1
    assert queries_waiting(REQUESTED, other_annotator) == [(query, 4)]
    assert (
        b"4 images of runs left to judge in 1 query" in client_of(other_annotator).get("/").content
    )
    assert (
        client_of(other_annotator)
        .get("/requested/")["Location"]
        .endswith(f"/queries/{query.pk}/requested/")
    )
    # Nothing is judged before it was displayed, and nothing else in a complete query.
    assert of_run(query, other_annotator, 12, "relevant") == "closed"
    shown = api.post(f"{address}draws/", {"count": 10}, format="json")
    assert (shown.json()["left"], shown.json()["to_judge"]) == (4, 4)
    page = client_of(other_annotator).get(f"/queries/{query.pk}/requested/").content.decode()
    assert "Images of runs" in page
    assert not any("secret" in text for text in (page, shown.content.decode()))
    ids = {one["image"] - FIRST_ID for one in shown.json()["results"]}
    assert ids == {11, 12, 13, 15}
    assert of_run(query, other_annotator, 16, "relevant") == "closed"
    [in_list] = record(query, other_annotator, item(12, "relevant"))
    assert in_list.code == "closed"
    assert of_run(query, researcher, 12, "relevant") == "closed"
    # One judgment is enough; taken back, the image waits again.
    assert of_run(query, other_annotator, 12, "relevant") == "stored"
    assert of_run(query, annotator, 13, "not_relevant") == "stored"
    assert of_run(query, reviewer, 11, "unsure") == "stored"
    assert queries_waiting(REQUESTED, annotator) == [(query, 1)]
    assert of_run(query, annotator, 13, None) == "stored"
    assert queries_waiting(REQUESTED, annotator) == [(query, 2)]
    query.refresh_from_db()
    assert query.state == "complete"
    assert Judgment.objects.get(query=query, image=FIRST_ID + 12).source == "run"


def test_states_and_origins(query, annotator, other_annotator, reviewer, admin):
    ask(query, reviewer, 20, 21)
    query = query_transition(query=query, to_state="open", by=admin)
    blind_show(kind=REQUESTED, query=query, annotator=other_annotator, count=1)
    [first] = BlindItem.objects.exclude(displayed_at=None)
    number = first.image_id - FIRST_ID
    assert of_run(query, other_annotator, 41 - number, "relevant") == "not_drawn"
    assert of_run(query, other_annotator, number, "relevant") == "stored"
    # Whoever judges these alone takes no part in the query; a correction in the list keeps where
    # the image was met.
    assert still_labeling(query) == [annotator.username]
    record(query, other_annotator, item(number, "not_relevant"))
    assert Judgment.objects.get(image=first.image, annotator=other_annotator).source == "run"
    query = query_transition(query=query, to_state="submitted", by=admin, note="enough")
    assert queries_waiting(REQUESTED, other_annotator) == [(query, 1)]
    query = query_transition(query=query, to_state="rejected", by=admin, reason="other", note="odd")
    assert queries_waiting(REQUESTED, annotator) == []
    assert of_run(query, annotator, 41 - number, "relevant") == "closed"
    assert ask(query, reviewer, 25) == 0
