"""Candidate lists: exact, frozen, the same bit for bit whatever is withdrawn later, and made anew
when the query changes.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import CommandError, call_command

from core.errors import Conflict
from core.jobs.models import Job
from labeling.candidates.freezing import list_freeze
from labeling.candidates.models import Candidate, CandidateList, PoolRanking
from labeling.candidates.selectors import list_checksum, list_status, list_verify
from labeling.candidates.services import list_extend, list_refresh, lists_refresh_stale
from labeling.lifecycle.services import query_transition, query_update
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding
from retrieval.flags.services import image_restore, image_withdraw
from retrieval.takedown.services import image_take_down
from tests.labeling.conftest import FIRST_ID, embed, make_images, make_species, run_jobs
from tests.labeling.judging import current_list, item, judge, ranked, record
from tests.toy_model import toy_model as toy_spec


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(8)


def test_opening_freezes_the_exact_order_with_its_scores(images, open_query):
    frozen = current_list(open_query())
    rows = list(frozen.candidates.order_by("rank").values_list("rank", "image_id", "score"))
    assert rows == [(n + 1, FIRST_ID + n, 1 - n / 2048) for n in range(8)]
    assert (frozen.size, frozen.total, frozen.unembedded) == (8, 8, 0)
    assert frozen.complete
    assert list_verify(frozen)
    # Freezing it again changes nothing.
    make_images(1, first=9)
    again = list_freeze(list_id=frozen.pk)
    assert again is not None
    assert (again.frozen_at, again.checksum) == (frozen.frozen_at, frozen.checksum)
    assert frozen.candidates.count() == 8
    # Images without an embedding are told.
    make_images(2, first=10, embedded=False)
    query = open_query("a frog")
    frozen = current_list(query)
    assert (frozen.size, frozen.unembedded, frozen.complete) == (9, 2, False)
    assert list_status(Query.objects.get(pk=query.pk)).detail.startswith("2 images in the corpus")


def test_equal_scores_are_in_the_order_of_image_ids(toy_model, open_query):
    images = make_images(4, embedded=False)
    embed([images[2], images[0], images[3], images[1]], scores=[0.5, 0.5, 0.75, 0.5])
    assert ranked(current_list(open_query())) == [3, 0, 1, 2]


def test_extending_goes_on_behind_the_last_exactly(toy_model, open_query, settings):
    images = make_images(9, embedded=False)
    # Ties across the seam: 2, 3 and 4 share a score.
    embed(images, scores=[0.9, 0.8, 0.5, 0.5, 0.5, 0.4, 0.3, 0.2, 0.1])
    whole = current_list(open_query("a whole list"))
    settings.CANDIDATE_DEPTH = 3
    frozen = current_list(open_query("a short list"))
    assert list_extend(candidate_list=frozen, by_count=2) == 2
    assert list_extend(candidate_list=frozen, by_count=3) == 3
    assert ranked(frozen) == list(range(8))
    assert list_extend(candidate_list=frozen, by_count=500) == 1
    frozen.refresh_from_db()
    assert ranked(frozen) == ranked(whole)
    assert frozen.checksum == whole.checksum
    assert list_verify(frozen)
    assert frozen.complete
    with pytest.raises(Conflict, match="already holds every"):
        list_extend(candidate_list=frozen, by_count=1)


def test_what_is_embedded_later_changes_no_list_and_is_not_in_its_extension(
    images, open_query, settings
):
    settings.CANDIDATE_DEPTH = 4
    frozen = current_list(open_query())
    assert (ranked(frozen), frozen.total, frozen.complete) == ([0, 1, 2, 3], 8, False)
    toad = make_species("Bufo bufo")
    make_images(6, first=20, species=toad)
    filtered = current_list(open_query("a toad of a kind", species=[toad]))
    assert ranked(filtered) == list(range(20, 26)), "all, however many"
    assert (filtered.species_ids, filtered.complete) == ([toad.pk], True)
    late = make_images(2, first=100, embedded=False)
    embed(late, scores=[0.9999, 0.998])
    assert list_verify(frozen)
    assert list_extend(candidate_list=frozen, by_count=10) == 4
    frozen.refresh_from_db()
    assert ranked(frozen) == list(range(8))
    assert list_verify(frozen)


def test_a_list_differs_once_an_embedding_of_it_is_gone_or_a_row_changed(images, open_query):
    frozen = current_list(open_query())
    call_command("verify_lists")
    rows = Candidate.objects.filter(list=frozen, rank=2)
    rows.update(score=0.25)
    assert not list_verify(frozen)
    rows.update(score=1 - 1 / 2048)
    assert list_verify(frozen)
    Embedding.objects.filter(image=images[3]).delete()
    assert not list_verify(frozen)
    with pytest.raises(CommandError, match="1 of 1 lists differ"):
        call_command("verify_lists")
    with pytest.raises(CommandError, match=r"No ready list is of 77, 78\."):
        call_command("verify_lists", query=[78, frozen.query.query_id, 77])


def test_a_list_that_lacks_its_end_or_has_a_ranking_of_another_kind_differs(images, open_query):
    frozen = current_list(open_query())
    vector, model = frozen.text_vector, frozen.embedding_model
    ranking = PoolRanking.objects.create(
        list=frozen, place=1, embedding_model=model, text_vector=vector, image_ids=[], scores=[]
    )
    assert not list_verify(frozen)
    ranking.delete()
    assert list_verify(frozen)
    # Cut with its number and its checksum, as if it had never been longer.
    frozen.candidates.filter(rank=8).delete()
    frozen.size = 7
    frozen.checksum = list_checksum(
        frozen.candidates.order_by("rank").values_list("image_id", "score")
    )
    frozen.save()
    assert not list_verify(frozen)
    frozen.depth = 7
    assert list_verify(frozen)


@pytest.mark.parametrize("change", ["text", "species"])
def test_a_new_text_or_filter_makes_a_new_list_and_keeps_the_judgments(
    change, images, open_query, admin, annotator
):
    query = open_query()
    old = current_list(query)
    judge(query, annotator, [0, 1], "relevant")
    toad = make_species("Bufo bufo")
    make_images(3, first=50, species=toad)
    Image.objects.filter(pk=FIRST_ID + 1).update(species=toad)
    changes: dict[str, Any] = {"text": {"text": "other"}, "species": {"species": [toad]}}[change]
    query_update(query=query, by=admin, **changes)
    building = current_list(query)
    assert building.pk != old.pk
    assert list_status(Query.objects.get(pk=query.pk)).state == "building"
    run_jobs()
    new = current_list(query)
    assert new.pk == building.pk
    if change == "text":
        assert ranked(new) == [52, 51, 50, *reversed(range(8))]
    else:
        assert ranked(new) == [1, 50, 51, 52]
    assert query.judgments.count() == 2
    assert CandidateList.objects.filter(pk=old.pk).exists()


def test_a_draft_and_the_same_text_again_make_no_list(images, new_query, open_query, admin):
    draft, query = new_query(), open_query("a frog")
    query_update(query=draft, by=admin, text="something else")
    with pytest.raises(Conflict, match="only an open or submitted one"):
        list_refresh(query=draft, by=admin)
    query_update(query=query, by=admin, text=query.text, guidelines="Look at the feet.")
    assert (draft.lists.count(), query.lists.count()) == (0, 1)


def test_a_new_model_makes_new_lists_of_open_queries(images, open_query, new_query, settings):
    query, draft = open_query(), new_query()
    old = current_list(query)
    settings.EMBEDDING_MODEL = toy_spec("second")
    model = embedding_model_get_or_create(name=settings.EMBEDDING_MODEL)
    Embedding.objects.create(
        model=model, image=images[5], vector=[1, 0], created_at=Embedding.objects.last().created_at
    )
    assert lists_refresh_stale(by=None) == 1
    assert lists_refresh_stale(by=None) == 0
    run_jobs()
    assert ranked(current_list(query)) == [5]
    assert current_list(query).unembedded == 7
    assert list_verify(old)
    assert draft.lists.count() == 0


def test_a_refresh_takes_in_what_came_since_and_labels_go_on_until_it_is_there(
    images, open_query, admin
):
    query = open_query()
    old = current_list(query)
    make_images(2, first=8)
    asked = list_refresh(query=query, by=admin)
    assert current_list(query) == old
    assert list_refresh(query=query, by=admin) == asked
    run_jobs()
    assert current_list(query) == asked
    assert ranked(asked) == list(range(10))


def test_a_change_supersedes_a_list_that_is_being_made(images, open_query, admin):
    query = open_query()
    first = list_refresh(query=query, by=admin)
    query_update(query=query, by=admin, text="other")
    assert list_freeze(list_id=first.pk) is None
    assert {job.state for job in Job.objects.filter(pk=first.job_id)} == {"canceled"}
    run_jobs()
    assert ranked(current_list(query)) == list(reversed(range(8)))


def test_a_list_over_nothing_is_empty_and_says_why(toy_model, new_query, admin):
    def made_after_the_images_went(text: str) -> Query:
        [image] = make_images(1, first=7)
        query = query_transition(query=new_query(text), to_state="open", by=admin)
        image.delete()
        run_jobs()
        query.refresh_from_db()
        return query

    empty = made_after_the_images_went("a toad")
    assert list_status(empty).detail == "There was no image in the corpus when the list was made."
    make_images(2, embedded=False)
    status = list_status(made_after_the_images_went("again"))
    assert (status.state, status.size) == ("ready", 0)
    says = f"None of the 2 images in the corpus was embedded under {toy_spec()} when the list"
    assert status.detail.startswith(says)


def test_an_empty_list_does_not_take_the_place_of_a_full_one(images, open_query, admin):
    query = open_query()
    old = current_list(query)
    Embedding.objects.all().delete()
    list_refresh(query=query, by=admin)
    [job] = run_jobs()
    assert job.state == Job.State.FAILED
    assert "so the present list stays" in job.error
    assert current_list(query) == old


def test_a_model_that_cannot_be_loaded_fails_the_job_and_can_be_tried_again(
    images, new_query, admin, settings
):
    query = query_transition(query=new_query(), to_state="open", by=admin)
    settings.EMBEDDING_MODEL = "no-such-model"
    list_refresh(query=query, by=admin)
    [job] = run_jobs()
    assert "Model 'no-such-model'" in job.error
    status = list_status(Query.objects.get(pk=query.pk))
    assert (status.state, status.job) == ("failed", job.pk)
    settings.EMBEDDING_MODEL = toy_spec()
    list_refresh(query=query, by=admin)
    run_jobs()
    assert ranked(current_list(query)) == list(range(8))


def test_a_list_is_never_seen_half_made(images, new_query, admin, annotator, toy_model):
    query = query_transition(query=new_query(), to_state="open", by=admin)
    assert query.current_list is not None
    assert not query.current_list.ready
    [outcome] = record(query, annotator, item(0, "relevant"))
    assert outcome.status == "refused"
    assert "new candidate list is being made" in outcome.detail


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
