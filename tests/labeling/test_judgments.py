"""Judgments: counted once, kept when changed, refused with a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labeling.judging.access import judgment_history
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.judging.progress import progress
from labeling.judging.services import JudgmentOutcome, JudgmentStatus
from labeling.lifecycle.services import query_transition, query_update
from labeling.queries.models import Query
from tests.labeling.conftest import FIRST_ID, make_images, run_jobs
from tests.labeling.judging import item, record, stored


@pytest.fixture
def query(toy_model, open_query) -> Query:
    """An open query over six images."""
    make_images(6)
    return open_query()


def test_a_judgment_carries_list_rank_and_seconds(query, annotator):
    [outcome] = record(query, annotator, item(2, "relevant", seconds=2.5))
    assert (outcome.status, outcome.relevance, outcome.rank) == ("stored", "relevant", 3)
    [judgment] = query.judgments.all()
    assert judgment.candidate_list == query.current_list
    assert stored(query) == [(2, "relevant", 3, 2.5)]
    [event] = query.judgment_events.filter(image=judgment.image, annotator=annotator)
    assert (event.previous, event.relevance, event.rank, event.seconds) == ("", "relevant", 3, 2.5)


def test_a_change_keeps_when_it_was_first_judged_and_that_it_was_in_the_list(query, annotator):
    record(query, annotator, item(0, "relevant"), item(1, "relevant", source="similar"))
    first = list(Judgment.objects.order_by("image_id").values_list("pk", "created_at"))
    for number in (0, 1):
        record(query, annotator, item(number, "unsure", source="search"))
    changed = Judgment.objects.order_by("image_id")
    assert list(changed.values_list("pk", "created_at")) == first
    assert [(one.relevance, one.source) for one in changed] == [
        ("unsure", "list"),
        ("unsure", "search"),
    ]


def test_a_repeat_is_answered_after_the_query_was_closed_or_reranked(query, annotator, admin):
    sent = item(1, "relevant")
    record(query, annotator, sent)
    query_update(query=query, by=admin, text="other")
    run_jobs()
    query_transition(query=query, to_state="complete", by=admin, note="Enough.")
    assert record(query, annotator, sent) == [
        JudgmentOutcome(
            image=sent.image_id,
            status=JudgmentStatus.REPEATED,
            relevance="relevant",
            current="relevant",
            rank=2,
        )
    ]


def test_one_batch_keeps_the_order_of_its_items(query, annotator):
    outcomes = record(
        query,
        annotator,
        item(0, "relevant"),
        item(1, "relevant"),
        item(0, "not_relevant"),
        item(9, "relevant"),
        item(0, "unsure"),
    )
    assert [o.status for o in outcomes] == ["stored", "stored", "stored", "refused", "stored"]
    assert stored(query) == [(0, "unsure", 1, 3), (1, "relevant", 2, 1)]
    assert [e.previous for e in judgment_history(query, FIRST_ID, annotator)] == [
        "",
        "relevant",
        "not_relevant",
    ]


def test_a_repeat_counts_once_and_undoes_no_later_change(query, annotator):
    sent = item(0, "relevant", seconds=2)
    assert [o.status for o in record(query, annotator, sent, sent)] == ["stored", "repeated"]
    assert [o.status for o in record(query, annotator, sent)] == ["repeated"]
    assert stored(query) == [(0, "relevant", 1, 2)]
    assert JudgmentEvent.objects.count() == 1
    record(query, annotator, item(0, "not_relevant"))
    [outcome] = record(query, annotator, sent)
    assert (outcome.status, outcome.relevance) == ("repeated", "relevant")
    assert stored(query) == [(0, "not_relevant", 1, 3)]


def test_a_client_id_is_of_one_judgment_only(toy_model, open_query, annotator, other_annotator):
    make_images(2)
    query, second = open_query(grades="partly"), open_query("a frog")
    sent = item(0, "relevant", grade=3)
    record(query, annotator, sent)
    for of, changed in (
        (query, {"relevance": "not_relevant", "grade": 1}),
        (query, {"grade": 2}),
        (query, {"grade": None}),
        (query, {"relevance": None, "grade": None}),
        (query, {"image_id": FIRST_ID + 1}),
        (query, {"source": "search"}),
        (second, {"grade": None}),
    ):
        [outcome] = record(of, annotator, replace(sent, **changed))
        assert (outcome.status, outcome.code) == ("refused", "invalid"), changed
        assert outcome.detail.startswith("client_id: it was used before")
    event = JudgmentEvent.objects.get()
    assert (event.relevance, event.grade, event.query) == ("relevant", 3, query)
    # Another person may have the same by chance.
    assert record(query, other_annotator, sent)[0].status == "stored"


@pytest.mark.parametrize("source", ["search", "similar"])
def test_elsewhere_any_image_of_the_corpus_is_taken(
    toy_model, open_query, annotator, settings, source
):
    settings.CANDIDATE_DEPTH = 2
    make_images(6)
    query = open_query()
    items = [item(number, "relevant", source=source) for number in (1, 5, 99)]
    *taken, unknown = record(query, annotator, *items)
    assert [(one.status, one.rank) for one in taken] == [("stored", 2), ("stored", None)]
    assert (unknown.code, unknown.detail) == ("invalid", "image: there is no image 1100.")
    assert progress(query, annotator=annotator).stop.judged == 1
