"""Candidate lists and withdrawn images: a frozen list is of its moment, whatever follows."""

from __future__ import annotations

import threading

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from labeling.candidates.freezing import list_freeze
from labeling.candidates.models import Candidate, CandidateList
from labeling.candidates.selectors import list_status, list_verify
from labeling.candidates.services import list_extend, list_refresh
from labeling.lifecycle.services import query_transition
from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.embedding.models import Embedding
from retrieval.flags.services import image_restore, image_withdraw
from retrieval.takedown.services import image_take_down
from tests.labeling.conftest import FIRST_ID, make_images, make_species, run_jobs
from tests.labeling.judging import current_list, judge, ranked
from tests.processes import wait_for
from tests.threads import at_once


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(8)


def test_a_list_leaves_out_what_is_withdrawn_when_it_is_frozen(images, open_query, reviewer):
    make_images(2, first=8, embedded=False)
    image_withdraw(image=images[0], by=reviewer)
    image_withdraw(image=images[5], by=reviewer)
    image_withdraw(image=Image(pk=FIRST_ID + 9), by=reviewer)
    frozen = current_list(open_query())
    assert ranked(frozen) == [1, 2, 3, 4, 6, 7]
    assert (frozen.size, frozen.total, frozen.unembedded) == (6, 6, 1)
    assert list_verify(frozen)


def test_a_species_filter_is_exhausted_without_its_withdrawn_images(
    toy_model, open_query, reviewer
):
    toad = make_species("Bufo bufo")
    toads = make_images(4, species=toad)
    make_images(3, first=10)
    image_withdraw(image=toads[1], by=reviewer)
    frozen = current_list(open_query(species=[toad]))
    assert ranked(frozen) == [0, 2, 3]
    assert frozen.complete


def test_later_decisions_change_no_frozen_list(images, open_query, reviewer):
    image_withdraw(image=images[2], by=reviewer)
    frozen = current_list(open_query())
    rows, checksum = ranked(frozen), frozen.checksum
    assert rows == [0, 1, 3, 4, 5, 6, 7]
    for act, number in [
        (image_withdraw, 4),
        (image_restore, 2),
        (image_withdraw, 0),
        (image_restore, 4),
        (image_withdraw, 2),
        (image_withdraw, 4),
    ]:
        act(image=images[number], by=reviewer)
        frozen.refresh_from_db()
        assert (ranked(frozen), frozen.checksum) == (rows, checksum)
        assert list_verify(frozen)
    call_command("verify_lists")


def test_a_new_list_is_of_what_is_withdrawn_by_then_and_the_judgments_stay(
    images, open_query, reviewer, admin, annotator
):
    image_withdraw(image=images[1], by=reviewer)
    query = open_query()
    old = current_list(query)
    judge(query, annotator, [0, 2], "relevant")
    image_withdraw(image=images[0], by=reviewer)
    image_restore(image=images[1], by=reviewer)
    assert ranked(old) == [0, 2, 3, 4, 5, 6, 7]
    list_refresh(query=query, by=admin)
    run_jobs()
    assert ranked(current_list(query)) == [1, 2, 3, 4, 5, 6, 7]
    assert query.judgments.count() == 2
    assert list_verify(old)
    assert list_verify(current_list(query))


def test_an_extension_goes_on_in_the_order_of_the_freezing_moment(
    images, open_query, reviewer, settings
):
    image_withdraw(image=images[3], by=reviewer)
    image_withdraw(image=images[6], by=reviewer)
    whole = current_list(open_query("a whole list"))
    settings.CANDIDATE_DEPTH = 3
    frozen = current_list(open_query("a short list"))
    assert (ranked(frozen), frozen.total) == ([0, 1, 2], 6)
    # Since then one behind its end came back, another went, and so did its last.
    image_restore(image=images[3], by=reviewer)
    image_withdraw(image=images[4], by=reviewer)
    image_withdraw(image=images[2], by=reviewer)
    assert list_extend(candidate_list=frozen, by_count=2) == 2
    frozen.refresh_from_db()
    assert ranked(frozen) == [0, 1, 2, 4, 5]
    assert list_verify(frozen)
    assert list_extend(candidate_list=frozen, by_count=500) == 1
    frozen.refresh_from_db()
    assert ranked(frozen) == ranked(whole)
    assert frozen.checksum == whole.checksum
    assert frozen.complete
    assert list_verify(frozen)


def test_a_corpus_that_is_all_withdrawn_gives_an_empty_list(images, new_query, reviewer, admin):
    query = query_transition(query=new_query(), to_state="open", by=admin)
    for image in images:
        image_withdraw(image=image, by=reviewer)
    run_jobs()
    query.refresh_from_db()
    status = list_status(query)
    assert (status.state, status.size, status.total) == ("ready", 0, 0)
    assert status.detail == "There was no image in the corpus when the list was made."


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return bool(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_lists_frozen_while_images_come_and_go_verify_ever_after(
        self, transactional_db, toy_model, new_query, admin, reviewer
    ):
        images = make_images(12)
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
        self, transactional_db, toy_model, new_query, admin, reviewer
    ):
        images = make_images(3)
        query = query_transition(query=new_query(), to_state="open", by=admin)
        under_way = threading.Event()

        def withdraw() -> None:
            with transaction.atomic():
                image_withdraw(image=images[1], by=reviewer)
                under_way.set()
                wait_for(somebody_waits, what="the list to wait for the withdrawal")

        def freeze() -> CandidateList | None:
            under_way.wait(30)
            return list_freeze(list_id=query.current_list_id or 0)

        withdrawn, frozen = at_once(withdraw, freeze)
        assert withdrawn is None
        assert ranked(frozen) == [0, 2]
        assert list_verify(frozen)


def test_a_list_is_verified_without_what_was_taken_down(images, open_query, admin):
    frozen = current_list(open_query())
    image_take_down(image=images[2], reason="A face", by=admin)
    image_take_down(image=images[7], reason="A face", by=admin)
    assert ranked(frozen) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert list_verify(frozen)
    Embedding.objects.filter(image=images[4]).delete()
    assert not list_verify(frozen)


def test_a_shallow_list_is_verified_too(images, open_query, admin, settings):
    settings.CANDIDATE_DEPTH = 4
    frozen = current_list(open_query())
    image_take_down(image=images[2], reason="A face", by=admin)
    assert ranked(frozen) == [0, 1, 2, 3]
    assert list_verify(frozen)
    Candidate.objects.filter(list=frozen, rank=4).update(image=images[5])
    assert not list_verify(frozen)
