"""Judgments: counted once, kept when changed, refused with a reason."""

from __future__ import annotations

import pytest

from labeling.judging.access import judgment_history
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.judging.progress import progress
from labeling.judging.services import JudgmentOutcome, JudgmentStatus
from labeling.lifecycle.services import query_transition, query_update
from retrieval.corpus.models import Image
from tests.labeling.conftest import make_images, run_jobs
from tests.labeling.judging import item, judge, record, stored


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(6)


def test_a_judgment_carries_list_rank_and_seconds(images, open_query, annotator):
    query = open_query()
    [outcome] = record(query, annotator, item(2, "relevant", seconds=2.5))
    assert (outcome.status, outcome.relevance, outcome.rank) == ("stored", "relevant", 3)
    [judgment] = query.judgments.all()
    assert judgment.candidate_list == query.current_list
    assert stored(query) == [(2, "relevant", 3, 2.5)]
    [event] = query.judgment_events.filter(image=judgment.image, annotator=annotator)
    assert (event.previous, event.relevance, event.rank, event.seconds) == ("", "relevant", 3, 2.5)


def test_a_change_keeps_the_old_value_and_adds_the_time(images, open_query, annotator):
    query = open_query()
    record(query, annotator, item(0, "relevant", seconds=2))
    record(query, annotator, item(0, "unsure", seconds=3))
    assert stored(query) == [(0, "unsure", 1, 5)]
    history = judgment_history(query, images[0].pk, annotator)
    assert [(e.previous, e.relevance) for e in history] == [
        ("", "relevant"),
        ("relevant", "unsure"),
    ]


def test_a_repeat_counts_once(images, open_query, annotator):
    query = open_query()
    sent = item(0, "relevant", seconds=2)
    assert [o.status for o in record(query, annotator, sent)] == ["stored"]
    assert [o.status for o in record(query, annotator, sent, sent)] == ["repeated"] * 2
    assert stored(query) == [(0, "relevant", 1, 2)]
    assert JudgmentEvent.objects.count() == 1


def test_a_change_keeps_when_it_was_first_judged_and_that_it_was_in_the_list(
    images, open_query, annotator
):
    query = open_query()
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


def test_a_late_repeat_does_not_undo_a_later_change(images, open_query, annotator):
    query = open_query()
    first = item(0, "relevant")
    record(query, annotator, first)
    record(query, annotator, item(0, "not_relevant"))
    [outcome] = record(query, annotator, first)
    assert (outcome.status, outcome.relevance) == ("repeated", "relevant")
    assert stored(query) == [(0, "not_relevant", 1, 2)]


def test_a_repeat_is_answered_after_the_query_was_closed_or_reranked(
    images, open_query, annotator, admin
):
    query = open_query()
    sent = item(1, "relevant")
    record(query, annotator, sent)
    query_update(query=query, by=admin, text="other")
    run_jobs()
    query_transition(query=query, to_state="complete", by=admin, note="Enough.")
    assert record(query, annotator, sent) == [
        JudgmentOutcome(
            image_id=sent.image_id,
            status=JudgmentStatus.REPEATED,
            relevance="relevant",
            current="relevant",
            rank=2,
        )
    ]


def test_one_batch_keeps_the_order_of_its_items(images, open_query, annotator):
    query = open_query()
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
    assert [e.previous for e in judgment_history(query, images[0].pk, annotator)] == [
        "",
        "relevant",
        "not_relevant",
    ]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"relevance": "unsure"}, "relevance"),
        ({"image": 1}, "image"),
        ({"source": "search"}, "source"),
    ],
)
def test_a_client_id_is_of_one_judgment_only(changed, field, images, open_query, annotator):
    query = open_query()
    sent = item(0, "relevant")
    record(query, annotator, sent)
    other = item(
        changed.get("image", 0),
        changed.get("relevance", "relevant"),
        client_id=sent.client_id,
        source=changed.get("source", "list"),
    )
    [outcome] = record(query, annotator, other)
    assert outcome.status == "refused"
    assert outcome.detail.startswith("client_id: it was used before")
    assert stored(query) == [(0, "relevant", 1, 1)]


def test_a_client_id_of_another_query_is_refused_and_of_another_person_is_not(
    images, open_query, annotator, other_annotator
):
    query, second = open_query(), open_query("a frog")
    sent = item(0, "relevant")
    record(query, annotator, sent)
    assert record(second, annotator, sent)[0].status == "refused"
    assert record(query, other_annotator, sent)[0].status == "stored"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"number": 99}, "image: image 1100 is not in the query's candidate list"),
        ({"number": 99, "source": "search"}, "image: there is no image 1100"),
    ],
)
def test_what_is_refused_says_why(bad, reason, images, open_query, annotator):
    query = open_query()
    sent = {"number": 0, "relevance": "relevant"} | bad
    [outcome] = record(query, annotator, item(sent.pop("number"), **sent))
    assert outcome.status == "refused"
    assert outcome.detail.startswith(reason)
    assert stored(query) == []


def test_the_longest_time_is_taken(images, open_query, annotator):
    query = open_query()
    record(query, annotator, item(0, "relevant", seconds=3600), item(1, "relevant", seconds=0))
    assert stored(query) == [(0, "relevant", 1, 3600), (1, "relevant", 2, 0)]


def test_from_a_search_any_image_of_the_corpus_is_taken(images, open_query, annotator, settings):
    settings.CANDIDATE_DEPTH = 2
    query = open_query()
    outcomes = record(
        query, annotator, item(1, "relevant", source="search"), item(5, "relevant", source="search")
    )
    assert [(o.status, o.rank) for o in outcomes] == [("stored", 2), ("stored", None)]
    assert progress(query, annotator=annotator).stop.judged == 1


def test_too_many_at_once_are_refused(images, open_query, annotator):
    query = open_query()
    with pytest.raises(ValueError, match="at most 500"):
        record(query, annotator, *[item(0, "relevant")] * 501)


def test_a_batch_needs_the_same_few_statements_however_long(
    images, open_query, annotator, django_assert_max_num_queries
):
    query = open_query()
    with django_assert_max_num_queries(12):
        judge(query, annotator, range(6), "relevant")
