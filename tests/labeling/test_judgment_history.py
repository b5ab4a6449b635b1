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


def told(outcome: JudgmentOutcome) -> tuple[str, str, str | None, str | None]:
    return (outcome.status, outcome.code, outcome.relevance, outcome.current)


def changes(query: Query, number: int, user: Any) -> list[tuple[str, str]]:
    history = judgment_history(query, FIRST_ID + number, user)
    return [(event.previous, event.relevance) for event in history]


def withdraw(image: Image, by: Any) -> ImageWithdrawal:
    return ImageWithdrawal.objects.create(image=image, withdrawn_by=by, withdrawn_at=timezone.now())


class TestTakingBack:
    def test_nothing_stands_any_more_and_the_history_stays(self, images, open_query, annotator):
        query = open_query()
        judge(query, annotator, [0, 1], "not_relevant")
        [outcome] = record(query, annotator, item(1, None, seconds=4))
        assert told(outcome) == ("stored", "", None, None)
        assert outcome.rank == 2
        assert stored(query) == [(0, "not_relevant", 1, 1)]
        assert changes(query, 1, annotator) == [("", "not_relevant"), ("not_relevant", "")]
        own = progress(query, annotator=annotator)
        assert (own.stop.judged, own.stop.streak, own.stop.next_rank) == (1, 1, 2)
        assert (own.active_seconds, own.seconds_per_image) == (6, 1)

    def test_the_time_of_a_new_judgment_begins_anew(self, images, open_query, annotator):
        query = open_query()
        record(
            query,
            annotator,
            item(0, "relevant", seconds=5),
            item(0, None, seconds=2),
            item(0, "unsure", seconds=3),
        )
        assert stored(query) == [(0, "unsure", 1, 3)]
        assert progress(query, annotator=annotator).active_seconds == 10

    def test_in_one_batch_only_the_last_act_stands(self, images, open_query, annotator):
        query = open_query()
        judge(query, annotator, [0], "relevant")
        record(
            query, annotator, item(0, None), item(1, "relevant"), item(1, None), item(2, "unsure")
        )
        assert [number for number, *_ in stored(query)] == [2]
        assert changes(query, 1, annotator) == [("", "relevant"), ("relevant", "")]

    def test_where_nothing_stands_it_is_known_and_changes_nothing(
        self, images, open_query, annotator
    ):
        query = open_query()
        sent = item(0, None)
        assert told(record(query, annotator, sent)[0]) == ("stored", "", None, None)
        assert told(record(query, annotator, sent)[0]) == ("repeated", "", None, None)
        assert stored(query) == []
        assert JudgmentEvent.objects.count() == 1

    def test_a_late_repeat_of_it_takes_nothing_back_again(self, images, open_query, annotator):
        query = open_query()
        judge(query, annotator, [0], "relevant")
        sent = item(0, None)
        record(query, annotator, sent, item(0, "unsure"))
        assert told(record(query, annotator, sent)[0]) == ("repeated", "", None, "unsure")
        assert [relevance for _, relevance, *_ in stored(query)] == ["unsure"]

    def test_its_client_id_is_of_no_other_act(self, images, open_query, annotator):
        query = open_query()
        sent = item(0, None)
        record(query, annotator, sent)
        [outcome] = record(query, annotator, item(0, "relevant", client_id=sent.client_id))
        assert told(outcome) == ("refused", "invalid", None, None)

    def test_only_ones_own(self, images, open_query, annotator, other_annotator):
        query = open_query()
        judge(query, annotator, [0], "relevant")
        record(query, other_annotator, item(0, None))
        assert [one.annotator for one in query.judgments.all()] == [annotator]

    def test_also_of_an_image_that_a_new_list_no_longer_has(
        self, images, open_query, annotator, admin
    ):
        query = open_query()
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
        self, images, open_query, annotator, admin
    ):
        query = open_query()
        judge(query, annotator, [0], "relevant")
        record(query, annotator, item(0, None))
        with pytest.raises(QueryHasJudgments, match="can't be deleted"):
            query_delete(query=query)
        with pytest.raises(QueryHasJudgments, match="number can't change"):
            query_update(query=query, by=admin, query_id=99)
        query_transition(query=query, to_state="draft", by=admin)
        assert list(queries_visible_to(annotator)) == [query]


class TestExpecting:
    def test_what_stands_otherwise_is_left_and_told(self, images, open_query, annotator):
        query = open_query()
        judge(query, annotator, [0], "relevant")
        outcomes = record(
            query,
            annotator,
            item(0, "unsure", expected=None),
            item(0, "unsure", expected="not_relevant"),
            item(0, None, expected="unsure"),
            item(1, "relevant", expected="relevant"),
        )
        assert [told(one) for one in outcomes] == [
            ("refused", "conflict", None, "relevant"),
            ("refused", "conflict", None, "relevant"),
            ("refused", "conflict", None, "relevant"),
            ("refused", "conflict", None, None),
        ]
        assert outcomes[0].detail == (
            "It was changed elsewhere meanwhile: it is relevant now, and was unlabeled here."
        )
        assert stored(query) == [(0, "relevant", 1, 1)]
        assert JudgmentEvent.objects.count() == 1

    def test_each_item_meets_what_those_before_it_left(self, images, open_query, annotator):
        query = open_query()
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

    @pytest.mark.parametrize("said", ["relevant", None])
    def test_saying_what_stands_is_no_conflict(self, said, images, open_query, annotator):
        query = open_query()
        record(query, annotator, item(0, said))
        [outcome] = record(query, annotator, item(0, said, expected="unsure"))
        assert told(outcome)[:2] == ("stored", "")
        assert outcome.current == said

    def test_a_repeat_is_never_a_conflict(self, images, open_query, annotator):
        query = open_query()
        sent = item(0, "relevant", expected=None)
        record(query, annotator, sent, item(0, "unsure"))
        assert told(record(query, annotator, sent)[0]) == ("repeated", "", "relevant", "unsure")

    def test_nothing_expected_is_nothing_checked(self, images, open_query, annotator):
        query = open_query()
        judge(query, annotator, [0], "relevant")
        assert record(query, annotator, item(0, "unsure"))[0].status == "stored"


class TestWhen:
    @pytest.mark.parametrize(
        ("age", "waited"),
        [
            (0, timedelta()),
            (90.5, timedelta(seconds=90.5)),
            (-5, timedelta()),
            (31 * 86400, timedelta(days=30)),
            (math.inf, timedelta(days=30)),
        ],
    )
    def test_the_act_is_dated_back_by_its_age(self, age, waited, images, open_query, annotator):
        query = open_query()
        before = timezone.now()
        record(query, annotator, item(0, "relevant", age=age))
        after = timezone.now()
        event = query.judgment_events.get()
        assert before - waited <= event.acted_at <= after - waited
        assert before <= event.made_at <= after


class TestWithdrawnImages:
    def test_they_are_not_judged_and_their_judgments_stay(
        self, images, open_query, annotator, admin
    ):
        query = open_query()
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

    def test_a_repeat_is_answered_all_the_same(self, images, open_query, annotator, admin):
        query = open_query()
        sent = item(0, "relevant")
        record(query, annotator, sent)
        withdraw(images[0], admin)
        assert record(query, annotator, sent)[0].status == "repeated"


def test_more_like_this_takes_any_image_of_the_corpus(images, open_query, annotator, settings):
    settings.CANDIDATE_DEPTH = 2
    query = open_query()
    outcomes = record(
        query,
        annotator,
        item(1, "relevant", source="similar"),
        item(5, "relevant", source="similar"),
        item(99, "relevant", source="similar"),
    )
    assert [(one.status, one.rank) for one in outcomes[:2]] == [("stored", 2), ("stored", None)]
    assert (outcomes[2].code, outcomes[2].detail) == ("invalid", "image: there is no image 1100.")


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

    @pytest.mark.parametrize(
        "change",
        [
            {"relevance": "unsure"},
            {"previous": "unsure"},
            {"seconds": 9.0},
            {"client_id": uuid.UUID(int=1)},
            {"acted_at": timezone.now()},
            {"candidate_list": None, "rank": None},
        ],
        ids=lambda change: ", ".join(change),
    )
    def test_no_event_is_changed(self, event, change):
        events = JudgmentEvent.objects.filter(pk=event.pk)
        refused = pytest.raises(IntegrityError, match="is history and never changes")
        with refused, transaction.atomic():
            events.update(**change)
        assert events.get().relevance == "relevant"

    def test_no_event_is_removed(self, event):
        refused = pytest.raises(IntegrityError, match="is history and never changes")
        with refused, transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("DELETE FROM labeling_judgmentevent")
        assert JudgmentEvent.objects.count() == 1

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
