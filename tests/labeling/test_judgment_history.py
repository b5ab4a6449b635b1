"""Judgments taken back, expected, late or of withdrawn images; and a history that never changes."""

from __future__ import annotations

import math
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from labeling.judging.access import judgment_history, queries_visible_to
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.judging.progress import progress
from labeling.judging.services import JudgmentOutcome, judgments_record
from labeling.lifecycle.services import (
    QueryHasJudgments,
    query_delete,
    query_transition,
    query_update,
)
from labeling.queries.models import Query
from retrieval.corpus.models import Image, ImageWithdrawal
from tests.labeling.conftest import FIRST_ID, make_images, make_species, run_jobs
from tests.labeling.judging import item, judge, record, stored


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(6)


@pytest.fixture
def query(images, open_query) -> Query:
    """An open query over six images."""
    return open_query()


def told(outcome: JudgmentOutcome) -> tuple[str, str, str | None, str | None]:
    return (outcome.status, outcome.code, outcome.relevance, outcome.current)


def changes(query: Query, number: int, user: Any) -> list[tuple[str, str]]:
    history = judgment_history(query, FIRST_ID + number, user)
    return [(event.previous, event.relevance) for event in history]


def withdraw(image: Image, by: Any) -> ImageWithdrawal:
    return ImageWithdrawal.objects.create(image=image, withdrawn_by=by, withdrawn_at=timezone.now())


class TestTakingBack:
    def test_nothing_stands_any_more_and_the_history_stays(self, query, annotator):
        judge(query, annotator, [0, 1], "not_relevant")
        [outcome] = record(query, annotator, item(1, None, seconds=4))
        assert told(outcome) == ("stored", "", None, None)
        assert outcome.rank == 2
        assert stored(query) == [(0, "not_relevant", 1, 1)]
        assert changes(query, 1, annotator) == [("", "not_relevant"), ("not_relevant", "")]
        own = progress(query, annotator=annotator)
        assert (own.stop.judged, own.stop.streak, own.stop.next_rank) == (1, 1, 2)
        assert (own.active_seconds, own.seconds_per_image) == (6, 1)

    def test_in_one_batch_only_the_last_act_stands(self, query, annotator):
        judge(query, annotator, [0], "relevant")
        record(
            query, annotator, item(0, None), item(1, "relevant"), item(1, None), item(2, "unsure")
        )
        assert [number for number, *_ in stored(query)] == [2]
        assert changes(query, 1, annotator) == [("", "relevant"), ("relevant", "")]

    def test_where_nothing_stands_it_is_known_and_changes_nothing(self, query, annotator):
        sent = item(0, None)
        assert told(record(query, annotator, sent)[0]) == ("stored", "", None, None)
        assert told(record(query, annotator, sent)[0]) == ("repeated", "", None, None)
        assert stored(query) == []
        assert JudgmentEvent.objects.count() == 1
        # Nor does it take back what was judged since.
        judge(query, annotator, [0], "unsure")
        assert told(record(query, annotator, sent)[0]) == ("repeated", "", None, "unsure")
        assert [relevance for _, relevance, *_ in stored(query)] == ["unsure"]

    def test_only_ones_own(self, query, annotator, other_annotator):
        judge(query, annotator, [0], "relevant")
        record(query, other_annotator, item(0, None))
        assert [one.annotator for one in query.judgments.all()] == [annotator]

    def test_also_of_an_image_that_a_new_list_no_longer_has(self, images, query, annotator, admin):
        judge(query, annotator, [0], "relevant")
        toad = make_species("Bufo bufo")
        make_images(2, first=50, species=toad)
        query_update(query=query, by=admin, species=[toad])
        run_jobs()
        [again, back, twice] = record(
            query, annotator, item(0, "unsure"), item(0, None), item(0, None)
        )
        assert (again.code, back.status, twice.code) == ("not_in_list", "stored", "not_in_list")
        assert back.rank is None
        assert stored(query) == []

    def test_who_took_all_back_still_sees_the_query_and_it_is_not_deleted(
        self, query, annotator, admin
    ):
        judge(query, annotator, [0], "relevant")
        record(query, annotator, item(0, None))
        with pytest.raises(QueryHasJudgments, match="can't be deleted"):
            query_delete(query=query)
        with pytest.raises(QueryHasJudgments, match="number can't change"):
            query_update(query=query, by=admin, query_id=99)
        query_transition(query=query, to_state="draft", by=admin)
        assert list(queries_visible_to(annotator)) == [query]


class TestExpecting:
    def test_what_stands_otherwise_is_left_and_told(self, query, annotator):
        sent = item(0, "relevant", expected=None)
        record(query, annotator, sent)
        outcomes = record(
            query,
            annotator,
            item(0, "unsure", expected=None),
            item(0, "unsure", expected="not_relevant"),
            item(0, None, expected="unsure"),
            item(1, "relevant", expected="relevant"),
            # Neither a repeat nor saying what stands is a conflict.
            sent,
            item(0, "relevant", expected="unsure"),
            item(1, None, expected="unsure"),
        )
        assert [told(one) for one in outcomes] == [
            *[("refused", "conflict", None, "relevant")] * 3,
            ("refused", "conflict", None, None),
            ("repeated", "", "relevant", "relevant"),
            ("stored", "", "relevant", "relevant"),
            ("stored", "", None, None),
        ]
        assert outcomes[0].detail == (
            "It was changed elsewhere meanwhile: it is relevant now, and was unlabeled here."
        )
        assert stored(query) == [(0, "relevant", 1, 2)]

    def test_each_item_meets_what_those_before_it_left(self, query, annotator):
        outcomes = record(
            query,
            annotator,
            item(0, "relevant", expected=None),
            item(0, "unsure", expected="relevant"),
            item(0, "relevant", expected="relevant"),
            item(0, None, expected="unsure"),
            item(0, "not_relevant", expected=None),
        )
        assert [one.code for one in outcomes] == ["", "", "conflict", "", ""]
        assert [one.current for one in outcomes] == [
            "relevant",
            "unsure",
            "unsure",
            None,
            "not_relevant",
        ]


def test_acts_are_dated_back_by_their_age(query, annotator):
    waited = {0: 0, 90.5: 90.5, -5: 0, 31 * 86400: 30 * 86400, math.inf: 30 * 86400}
    before = timezone.now()
    record(query, annotator, *(item(n, "relevant", age=age) for n, age in enumerate(waited)))
    after = timezone.now()
    for event, seconds in zip(
        query.judgment_events.order_by("image"), waited.values(), strict=True
    ):
        back = timedelta(seconds=seconds)
        assert before - back <= event.acted_at <= after - back
        assert before <= event.made_at <= after


class TestWithdrawnImages:
    def test_they_are_not_judged_and_their_judgments_stay(self, images, query, annotator, admin):
        judge(query, annotator, [0, 1], "relevant")
        withdrawal = withdraw(images[0], admin)
        outcomes = record(
            query,
            annotator,
            item(0, "unsure"),
            item(0, None),
            item(0, "unsure", source="similar"),
            item(1, "unsure"),
        )
        assert [told(one) for one in outcomes] == [
            *[("refused", "withdrawn", None, "relevant")] * 3,
            ("stored", "", "unsure", "unsure"),
        ]
        assert [relevance for _, relevance, *_ in stored(query)] == ["relevant", "unsure"]
        withdrawal.restored_at, withdrawal.restored_by = timezone.now(), admin
        withdrawal.save()
        assert record(query, annotator, item(0, "unsure"))[0].status == "stored"


def test_the_cursor_is_ones_own_latest_event_on_the_query(
    images, open_query, annotator, other_annotator
):
    query, second = open_query(), open_query("a frog")

    def cursor(to: Query, *items: Any) -> int:
        return judgments_record(query=to, annotator=annotator, items=items).cursor

    assert cursor(query) == 0
    sent = [item(0, "relevant"), item(1, "relevant")]
    first = cursor(query, *sent)
    assert first == JudgmentEvent.objects.latest("pk").pk
    judge(query, other_annotator, [0], "relevant")
    other = cursor(second, item(0, "relevant"))
    assert other == JudgmentEvent.objects.latest("pk").pk > first
    assert cursor(query, *sent) == cursor(query, item(99, "relevant")) == first


class TestTheHistoryNeverChanges:
    @pytest.fixture
    def event(self, images, open_query, annotator) -> JudgmentEvent:
        judge(open_query(), annotator, [0], "relevant")
        return JudgmentEvent.objects.get()

    def test_no_event_is_changed_or_removed(self, event):
        events = JudgmentEvent.objects.filter(pk=event.pk)
        for change in (
            {"relevance": "unsure"},
            {"previous": "unsure"},
            {"seconds": 9.0},
            {"client_id": uuid.UUID(int=1)},
            {"acted_at": timezone.now()},
            {"candidate_list": None, "rank": None},
        ):
            refused = pytest.raises(IntegrityError, match="is history and never changes")
            with refused, transaction.atomic():
                events.update(**change)
        refused = pytest.raises(IntegrityError, match="is history and never changes")
        with refused, transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("DELETE FROM labeling_judgmentevent")
        assert events.get().relevance == "relevant"

    def test_a_candidate_list_can_go(self, event):
        Query.objects.update(current_list=None)
        assert event.candidate_list is not None
        event.candidate_list.delete()
        event.refresh_from_db()
        assert (event.candidate_list, event.rank) == (None, 1)

    def test_an_annotator_an_image_or_a_query_with_history_stays(self, event, annotator):
        record(event.query, annotator, item(0, None))
        assert not Judgment.objects.exists()
        for thing in (event.annotator, event.image, event.query):
            with pytest.raises(IntegrityError), transaction.atomic():
                thing.delete()
