"""How queries change: states and their history, what is fixed, refused or named as wrong."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from core.errors import Conflict
from labeling.lifecycle.services import (
    QueryHasJudgments,
    query_create,
    query_delete,
    query_from_search,
    query_transition,
    query_update,
)
from labeling.queries.models import Query
from labeling.queries.transitions import TransitionIncomplete, TransitionRefused
from retrieval.corpus.models import Image
from tests.labeling.conftest import make_images, make_species
from tests.labeling.judging import judge


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(3)


def test_each_change_of_state_is_kept(images, open_query, admin, reviewer):
    query = open_query()
    judge(query, reviewer, [0], "relevant")
    query_transition(query=query, to_state="complete", by=reviewer, note="well done")
    query_transition(query=query, to_state="open", by=admin)
    query = query_transition(
        query=query, to_state="rejected", by=admin, reason="too_easy", note="only one image"
    )
    assert (query.reject_reason, query.reject_note) == ("too_easy", "only one image")
    query = query_transition(query=query, to_state="open", by=admin)
    assert (query.reject_reason, query.reject_note) == ("", "")
    kept = query.transitions.values_list("from_state", "to_state", "reason", "note", "made_by")
    assert list(kept) == [
        ("draft", "open", "", "", admin.pk),
        ("open", "complete", "", "well done", reviewer.pk),
        ("complete", "open", "", "", admin.pk),
        ("open", "rejected", "too_easy", "only one image", admin.pk),
        ("rejected", "open", "", "", admin.pk),
    ]
    assert query.lists.count() == 1


def test_unknown_states_and_reasons_are_named(new_query, admin):
    query = new_query()
    with pytest.raises(TransitionIncomplete, match="'done' is no state"):
        query_transition(query=query, to_state="done", by=admin)
    with pytest.raises(TransitionIncomplete, match="'dull' is no reason"):
        query_transition(query=query, to_state="rejected", by=admin, reason="dull")
    query.refresh_from_db()
    assert query.state == "draft"


def test_what_was_labeled_against_is_fixed_when_it_is_handed_in(images, open_query, admin):
    query = open_query()
    judge(query, admin, [0], "relevant")
    toad = make_species("Bufo bufo")
    for state in ("submitted", "complete"):
        query_transition(query=query, to_state=state, by=admin, note="Enough.")
        for changes in ({"text": "other"}, {"species": [toad]}):
            with pytest.raises(Conflict, match="Reopen it to change them"):
                query_update(query=query, by=admin, **changes)
    query_update(query=query, by=admin, guidelines="Look closely.", split="test")
    query.refresh_from_db()
    assert (query.text, query.guidelines, query.split) == ("a toad", "Look closely.", "test")
    assert query.species.count() == 0


def test_nothing_judged_is_nothing_to_complete(images, open_query, reviewer, admin):
    query = open_query()
    for state in ("open", "submitted"):
        query_transition(query=query, to_state=state, by=admin)
        for person in (reviewer, admin):
            with pytest.raises(TransitionRefused, match="Nobody has judged for the query yet"):
                query_transition(query=query, to_state="complete", by=person, note="Enough.")
    judge(query, reviewer, [0], "relevant")
    # One judgment meets no stop rule; a reviewer may decide so all the same.
    query = query_transition(query=query, to_state="complete", by=reviewer, note="Enough.")
    assert query.state == "complete"


def test_the_number_of_a_completed_query_never_means_another(
    images, open_query, new_query, annotator, admin
):
    query = open_query(query_id=12)
    judge(query, annotator, [0], "relevant")
    query_transition(query=query, to_state="complete", by=admin, note="Enough.")
    for state in ("complete", "open", "rejected"):
        reason = "other" if state == "rejected" else ""
        query_transition(query=query, to_state=state, by=admin, reason=reason)
        with pytest.raises(QueryHasJudgments, match="can't be deleted"):
            query_delete(query=query)
        with pytest.raises(QueryHasJudgments, match="number can't change"):
            query_update(query=query, by=admin, query_id=13)
        with pytest.raises(ValidationError) as refused:
            new_query("another", query_id=12)
        assert list(refused.value.message_dict) == ["query_id"]
    query_update(query=query, by=admin, query_id=12, guidelines="The same number is no change.")
    draft = query_update(query=new_query("unjudged", query_id=20), by=admin, query_id=21)
    assert draft.query_id == 21
    assert Query.objects.get(query_id=12) == query


def test_what_is_wrong_is_named(new_query, admin):
    new_query("the seventh", query_id=7)
    for fields, field in (
        ({"text": ""}, "text"),
        ({"text": " \t"}, "text"),
        ({"text": "a\0b"}, "text"),
        ({"text": "x" * 501}, "text"),
        ({"category": "Dances"}, "category"),
        ({"split": "train"}, "split"),
        ({"iconic_group": "Toads"}, "iconic_group"),
        ({"query_id": 7}, "query_id"),
        ({"query_id": -1}, "query_id"),
        ({"query_id": 2**31}, "query_id"),
        ({"guidelines": "a\0b"}, "guidelines"),
    ):
        given = {"text": "a newt", "category": "Species ID", "split": "val"} | fields
        with pytest.raises(ValidationError) as refused:
            query_create(created_by=admin, **given)
        assert list(refused.value.message_dict) == [field]
    # A text is kept as it is; numbers are given from the highest on.
    query = new_query("  a “toad”, calling \n")
    query.refresh_from_db()
    assert (query.text, query.query_id) == ("  a “toad”, calling \n", 8)


def test_a_query_is_deleted_only_before_it_is_judged(images, open_query, annotator):
    judged, unjudged = open_query(), open_query("a frog")
    judge(judged, annotator, [0], "relevant")
    query_delete(query=unjudged)
    with pytest.raises(QueryHasJudgments, match="reject it instead"):
        query_delete(query=judged)
    assert list(Query.objects.all()) == [judged]
    with pytest.raises(Conflict, match="deleted meanwhile"):
        query_update(query=Query(pk=unjudged.pk or 0), by=None, text="x")


def test_a_search_becomes_one_draft(admin):
    toads = [make_species(f"Bufo b{n}", iconic_group="Amphibians") for n in range(2)]
    first = query_from_search(text="a toad calling", species=toads, created_by=admin)
    assert query_from_search(text="a toad calling", species=toads, created_by=admin) == first
    assert (first.state, first.iconic_group) == ("draft", "Amphibians")
    assert set(first.species.all()) == set(toads)
    other = query_from_search(text="a toad calling", created_by=admin)
    assert other != first
    assert other.iconic_group == ""
