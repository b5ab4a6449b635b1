"""Candidate lists and withdrawn images: a frozen list is of its moment, whatever follows."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from labeling.candidates.selectors import list_verify
from labeling.candidates.services import list_extend, list_refresh
from retrieval.corpus.models import Image
from retrieval.embedding.models import Embedding
from retrieval.flags.services import image_restore, image_withdraw
from retrieval.takedown.services import image_take_down
from tests.labeling.conftest import FIRST_ID, make_images, run_jobs
from tests.labeling.judging import current_list, judge, ranked


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


def test_a_list_is_verified_without_what_was_taken_down(images, open_query, admin):
    frozen = current_list(open_query())
    image_take_down(image=images[2], reason="A face", by=admin)
    image_take_down(image=images[7], reason="A face", by=admin)
    assert ranked(frozen) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert list_verify(frozen)
    Embedding.objects.filter(image=images[4]).delete()
    assert not list_verify(frozen)
