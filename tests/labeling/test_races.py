"""What happens at once, over real connections: nothing is lost, doubled or waits for ever."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction

from core.errors import QueryGone
from core.jobs.models import Job
from labeling.audits.models import ReleaseAudit, ReleaseKey
from labeling.audits.selectors import audit_state
from labeling.audits.services import audit_draw
from labeling.candidates.freezing import list_freeze
from labeling.candidates.models import Candidate, CandidateList
from labeling.candidates.selectors import list_verify
from labeling.candidates.services import list_extend, list_refresh
from labeling.certificates.bounds import missing_at_most
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.lifecycle.imports import judgments_import
from labeling.lifecycle.opening import queries_open
from labeling.lifecycle.services import (
    QueryHasJudgments,
    query_create,
    query_delete,
    query_from_search,
    query_transition,
)
from labeling.queries.models import Query
from labeling.queries.transitions import TransitionRefused
from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.flags.services import image_restore, image_withdraw
from tests.labeling.conftest import FIRST_ID, make_images
from tests.labeling.judging import item, judge, ranked, record, stored
from tests.processes import wait_for
from tests.threads import at_once, meanwhile, waiting

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def images(transactional_db, toy_model) -> None:
    """Six images to judge."""
    make_images(6)


class TestWhoWaitsForWhom:
    def test_annotators_of_one_query_do_not_wait_for_each_other(
        self, open_query, annotator, other_annotator
    ):
        query = open_query()
        with transaction.atomic():
            record(query, annotator, item(0, "relevant"))
            with meanwhile(lambda: judge(query, other_annotator, [0], "unsure")) as theirs:
                wait_for(lambda: theirs, seconds=30, what="the other annotator's judgment")
            assert [outcome.status for outcome in theirs[0]] == ["stored"]
        assert query.judgments.count() == 2

    def test_a_decision_waits_for_judgments_and_is_not_overtaken_by_new_ones(
        self, open_query, annotator, other_annotator, admin
    ):
        query = open_query()
        # Leaving ends the transaction first, and then waits for the threads.
        with ExitStack() as threads, transaction.atomic():
            record(query, annotator, item(0, "relevant"))
            decided = threads.enter_context(
                meanwhile(
                    lambda: query_transition(
                        query=query, to_state="complete", by=admin, note="Enough."
                    )
                )
            )
            wait_for(lambda: waiting() == 1, what="the decision to wait")
            late = threads.enter_context(
                meanwhile(lambda: record(query, other_annotator, item(1, "relevant"))[0])
            )
            wait_for(lambda: waiting() == 2, what="the late judgment to queue up")
            assert (decided, late) == ([], [])
        assert decided[0].state == "complete"
        assert late[0].code == "closed"
        assert [one.annotator for one in query.judgments.all()] == [annotator]

    def test_judgments_of_all_and_imports_and_decisions_never_wait_in_a_circle(
        self, open_query, annotator, other_annotator, reviewer, admin
    ):
        first, second = open_query(), open_query("a frog")
        rows = "".join(
            f"{query.query_id},{FIRST_ID + n},unsure\n" for query in (second, first) for n in (4, 5)
        )
        data = f"query_id,image_id,relevance\n{rows}".encode()
        calls: list[Callable[[], Any]] = []
        for round_ in range(3):
            for person in (annotator, other_annotator, reviewer):
                calls += [
                    lambda person=person, query=query, n=round_: record(
                        query, person, item(n, "relevant"), item(n, None), item(n, "unsure")
                    )
                    for query in (first, second)
                ]
            calls += [
                lambda: judgments_import(data=data, name="j.csv", annotator=annotator),
                lambda: list_refresh(query=first, by=admin),
                lambda: query_transition(query=second, to_state="submitted", by=admin),
                lambda: query_transition(query=second, to_state="open", by=admin),
            ]
        results = at_once(*calls)
        failed = [
            one
            for one in results
            if isinstance(one, Exception) and not isinstance(one, TransitionRefused)
        ]
        assert failed == []
        own = Judgment.objects.filter(query=first, image=FIRST_ID)
        assert own.count() == 3
        assert {one.relevance for one in own} == {"unsure"}


class TestRaces:
    def test_the_same_judgment_sent_eight_times_at_once_counts_once(self, open_query, annotator):
        query = open_query()
        sent = item(0, "relevant", seconds=2)
        results = at_once(*[lambda: record(query, annotator, sent)[0].status] * 8)
        assert sorted(results) == ["repeated"] * 7 + ["stored"]
        assert stored(query) == [(0, "relevant", 1, 2)]

    def test_the_same_ids_for_two_queries_at_once_never_deadlock(self, open_query, annotator):
        first, second = open_query(), open_query("a frog")
        ids = [uuid.uuid4() for _ in range(6)]
        forward = [item(n, "relevant", client_id=ids[n]) for n in range(6)]
        calls = [
            lambda: record(first, annotator, *forward),
            lambda: record(second, annotator, *reversed(forward)),
        ] * 3
        results = at_once(*calls)
        statuses = sorted(outcome.status for outcomes in results for outcome in outcomes)
        assert statuses.count("stored") == 6
        assert JudgmentEvent.objects.count() == 6

    def test_two_annotators_and_overlapping_batches_lose_nothing(
        self, open_query, annotator, other_annotator
    ):
        query = open_query()
        results = at_once(
            *[
                lambda person=person, order=order: judge(query, person, order, "relevant")
                for person in (annotator, other_annotator)
                for order in (range(6), range(5, -1, -1))
            ]
        )
        assert [len(outcomes) for outcomes in results] == [6] * 4
        assert query.judgments.count() == 12
        assert JudgmentEvent.objects.count() == 24

    def test_a_judgment_is_before_a_completion_or_refused_by_it(self, open_query, annotator, admin):
        query = open_query()
        judge(query, admin, [0], "relevant")
        *outcomes, done = at_once(
            *[lambda n=n: record(query, annotator, item(n, "relevant"))[0] for n in range(6)],
            lambda: query_transition(query=query, to_state="complete", by=admin, note="Enough."),
        )
        assert done.state == "complete"
        kept = [o.image - FIRST_ID for o in outcomes if o.status == "stored"]
        by_annotator = query.judgments.filter(annotator=annotator).order_by("image_id")
        assert [one.image_id - FIRST_ID for one in by_annotator] == kept
        ended = query.transitions.get(to_state="complete").made_at
        assert all(event.made_at < ended for event in JudgmentEvent.objects.all())

    def test_of_two_decisions_at_once_one_is_refused(self, open_query, admin):
        query = open_query()
        judge(query, admin, [0], "relevant")
        results = at_once(
            lambda: query_transition(query=query, to_state="draft", by=admin),
            lambda: query_transition(query=query, to_state="complete", by=admin, note="Enough."),
        )
        assert len([one for one in results if isinstance(one, TransitionRefused)]) == 1
        assert query.transitions.exclude(to_state="open").count() == 1

    def test_of_the_last_two_who_hand_in_at_once_one_submits(
        self, open_query, annotator, other_annotator
    ):
        for round_ in range(3):
            query = open_query(f"toad {round_}")
            people = (annotator, other_annotator)
            for person in people:
                judge(query, person, [0], "relevant")
            results = at_once(
                *[
                    lambda person=person, query=query: query_transition(
                        query=query, to_state="submitted", by=person, note="Enough."
                    )
                    for person in people * 2
                ]
            )
            assert {one.state for one in results} <= {"open", "submitted"}
            query.refresh_from_db()
            assert query.state == "submitted"
            passed = query.transitions.values_list("from_state", "to_state")
            assert list(passed)[1:] == [("open", "open"), ("open", "submitted")]
            assert query.assignments.count() == 2

    def test_a_first_judgment_and_the_last_hand_in_at_once_agree_on_who_takes_part(
        self, open_query, annotator, other_annotator
    ):
        for round_ in range(3):
            query = open_query(f"newt {round_}")
            judge(query, annotator, [0], "relevant")
            outcome, _ = at_once(
                lambda query=query: record(query, other_annotator, item(1, "relevant"))[0],
                lambda query=query: query_transition(
                    query=query, to_state="submitted", by=annotator, note="Enough."
                ),
            )
            query.refresh_from_db()
            assert (outcome.status, query.state) in [("stored", "open"), ("refused", "submitted")]

    def test_of_two_who_begin_at_once_one_gets_the_last_place(
        self, open_query, annotator, other_annotator
    ):
        for round_ in range(3):
            query = open_query(f"frog {round_}")
            Query.objects.filter(pk=query.pk).update(annotators_wanted=1)
            outcomes = at_once(
                *[
                    lambda person=person, query=query: record(query, person, item(0, "relevant"))
                    for person in (annotator, other_annotator)
                ]
            )
            assert sorted(one.status for [one] in outcomes) == ["refused", "stored"]
            assert query.assignments.count() == 1

    def test_a_list_extended_twice_at_once_grows_once(self, open_query, settings):
        settings.CANDIDATE_DEPTH = 2
        frozen = open_query().current_list
        assert frozen is not None
        added = at_once(*[lambda: list_extend(candidate_list=frozen, by_count=2)] * 4)
        frozen.refresh_from_db()
        assert frozen.size == 2 + sum(added)
        ranks = (
            Candidate.objects.filter(list=frozen).order_by("rank").values_list("rank", flat=True)
        )
        assert list(ranks) == list(range(1, frozen.size + 1))
        assert list_verify(frozen)

    def test_a_list_refreshed_at_once_is_made_once(self, open_query, admin):
        query = open_query()
        lists = at_once(*[lambda: list_refresh(query=query, by=admin)] * 4)
        assert len({one.pk for one in lists}) == 1
        assert query.lists.count() == 2

    def test_queries_created_at_once_have_numbers_of_their_own(self, admin):
        made = at_once(
            *[
                lambda n=n: query_create(text=f"query {n}", category="Species ID", created_by=admin)
                for n in range(6)
            ]
        )
        assert sorted(query.query_id for query in made) == [1, 2, 3, 4, 5, 6]

    def test_two_clicks_on_a_search_make_one_draft(self, admin):
        made = at_once(*[lambda: query_from_search(text="a toad", created_by=admin)] * 4)
        assert len({query.pk for query in made}) == 1

    def test_a_query_is_judged_or_deleted(self, open_query, annotator):
        query = open_query()
        judged, deleted = at_once(
            lambda: record(query, annotator, item(0, "relevant"))[0].status,
            lambda: query_delete(query=query),
        )
        if deleted is None:
            assert isinstance(judged, QueryGone)
            assert not Query.objects.exists()
        else:
            assert isinstance(deleted, QueryHasJudgments)
            assert (judged, query.judgments.count()) == ("stored", 1)


class TestListsAndWithdrawals:
    def test_lists_frozen_while_images_come_and_go_verify_ever_after(
        self, new_query, admin, reviewer
    ):
        make_images(6, first=6)
        images = list(Image.objects.order_by("pk"))
        for image in images[6:]:
            image_withdraw(image=image, by=reviewer)
        queries = [
            query_transition(query=new_query(f"toad {n}"), to_state="open", by=admin)
            for n in range(4)
        ]
        results = at_once(
            *[lambda one=one: image_withdraw(image=one, by=reviewer) for one in images[:6]],
            *[lambda one=one: image_restore(image=one, by=reviewer) for one in images[6:]],
            *[lambda q=q: list_freeze(list_id=q.current_list_id) for q in queries],
        )
        assert [one for one in results if isinstance(one, Exception)] == []
        for frozen in results[12:]:
            out = {
                one.image_id - FIRST_ID
                for one in ImageWithdrawal.objects.all()
                if one.withdrawn_at <= frozen.frozen_at
                and (one.restored_at is None or one.restored_at > frozen.frozen_at)
            }
            wanted = set(range(12)) - out
            assert (set(ranked(frozen)), frozen.size, frozen.total) == (
                wanted,
                len(wanted),
                len(wanted),
            )
            assert list_verify(frozen)

    def test_a_list_waits_for_a_withdrawal_that_is_not_committed_yet(
        self, new_query, admin, reviewer
    ):
        images = list(Image.objects.order_by("pk"))
        query = query_transition(query=new_query(), to_state="open", by=admin)
        under_way = threading.Event()

        def withdraw() -> None:
            with transaction.atomic():
                image_withdraw(image=images[1], by=reviewer)
                under_way.set()
                wait_for(waiting, what="the list to wait for the withdrawal")

        def freeze() -> CandidateList | None:
            under_way.wait(30)
            return list_freeze(list_id=query.current_list_id or 0)

        withdrawn, frozen = at_once(withdraw, freeze)
        assert withdrawn is None
        assert ranked(frozen) == [0, 2, 3, 4, 5]
        assert list_verify(frozen)


class TestAudits:
    def test_two_people_at_once_draw_the_same(self, open_query, annotator, other_annotator):
        query = open_query()
        judge(query, annotator, [0], "relevant")
        people = [annotator, other_annotator] * 3
        found = at_once(
            *[
                lambda one=one: audit_draw(query=query, annotator=one, count=3).to_judge
                for one in people
            ]
        )
        assert found == [found[0]] * 6
        assert query.draws.count() == 3

    def test_drawing_while_others_judge_counts_each_image_once(
        self, open_query, annotator, other_annotator
    ):
        make_images(14, first=6)
        query = open_query()
        judge(query, annotator, range(2), "relevant")
        at_once(
            *[lambda n=n: judge(query, other_annotator, [n], "not_relevant") for n in (2, 9, 16)],
            *[lambda: audit_draw(query=query, annotator=annotator, count=10)] * 2,
        )
        audit_draw(query=query, annotator=annotator, count=50)
        found = audit_state(Query.objects.select_related("current_list").get(pk=query.pk))
        *_, last = found.rounds
        assert last.drawn == last.unjudged
        assert found.unjudged == 0
        assert missing_at_most(found.hopeful, found=2) == 0

    def test_hand_ins_at_once_use_one_key(self, open_query, annotator, settings):
        settings.RELEASE_AUDIT_SHARE = 0.3
        queries = [open_query(f"query {n}") for n in range(4)]
        for one in queries:
            judge(one, annotator, [0], "relevant")
        at_once(
            *[
                lambda one=one: query_transition(
                    query=one, to_state="submitted", by=annotator, note="Enough."
                )
                for one in queries
            ]
        )
        assert ReleaseKey.objects.count() == 1
        assert ReleaseAudit.objects.count() == 4


def test_a_worker_ranks_lists_that_wait_beside_each_other(new_query, admin, toy_model, worker):
    call_command("pack_embeddings", model=toy_model.name, verbosity=0)
    queries = [new_query(f"a toad of number {number}") for number in range(8)]
    queries_open(pks=[query.pk for query in queries], by=admin)
    wait_for(lambda: not Job.objects.filter(state__in=Job.UNFINISHED).exists(), what="the jobs")
    assert set(Job.objects.values_list("state", flat=True)) == {"done"}
    frozen = [Query.objects.get(pk=query.pk).current_list for query in queries]
    assert all(one.ready and one.size == 6 for one in frozen)
    assert all(list_verify(one) for one in frozen)
