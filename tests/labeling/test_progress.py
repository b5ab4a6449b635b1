"""Progress and the stop rule, through the database."""

from __future__ import annotations

import random
from typing import Any

import pytest
from django.utils import timezone

from labeling.candidates.stopping import stop_state
from labeling.judging.consensus import Vote, consensus
from labeling.judging.models import Judgment
from labeling.judging.progress import annotators_of, progress
from labeling.lifecycle.imports import judgments_import
from labeling.lifecycle.services import query_transition, query_update
from labeling.queries.models import Query
from labeling.queries.transitions import TransitionRefused
from retrieval.corpus.models import Image, ImageWithdrawal
from tests.labeling.conftest import FIRST_ID, make_images, make_species, run_jobs
from tests.labeling.judging import item, judge, record


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(120)


@pytest.fixture
def query(images, open_query) -> Query:
    return open_query()


def fresh(query: Query) -> Query:
    return Query.objects.select_related("benchmark", "current_list").get(pk=query.pk)


def test_the_stop_rule_is_met_at_exactly_100(query, annotator):
    judge(query, annotator, [0], "relevant")
    judge(query, annotator, range(1, 100), "not_relevant")
    own = progress(query, annotator=annotator)
    assert (own.stop.streak, own.stop.met, own.stop.rule) == (99, False, "none")
    judge(query, annotator, [100], "unsure")
    own = progress(query, annotator=annotator)
    assert (own.stop.streak, own.stop.met, own.stop.rule) == (100, True, "streak")
    assert (own.stop.judged, own.stop.prefix, own.stop.next_rank) == (101, 101, 102)
    assert (own.stop.remaining, own.unsure) == (19, 1)
    assert progress(query).stop.streak == 100
    # A changed judgment changes the streak.
    judge(query, annotator, [97], "relevant")
    own = progress(query, annotator=annotator)
    assert (own.stop.streak, own.stop.relevant, own.stop.met) == (3, 2, False)


def test_a_gap_ends_the_streak_until_it_is_filled(query, annotator):
    judge(query, annotator, [*range(50), *range(51, 110)], "not_relevant")
    own = progress(query, annotator=annotator)
    assert (own.stop.streak, own.stop.judged, own.stop.next_rank) == (50, 109, 51)
    judge(query, annotator, [50], "not_relevant")
    assert progress(query, annotator=annotator).stop.streak == 110


def test_imported_judgments_count_by_their_rank(query, annotator):
    rows = "".join(f"{query.query_id},{FIRST_ID + n},not_relevant\n" for n in range(99, 39, -1))
    data = f"query_id,image_id,relevance\n{rows}".encode()
    judgments_import(data=data, name="j.csv", annotator=annotator)
    assert progress(query, annotator=annotator).stop.streak == 0
    judge(query, annotator, range(40), "not_relevant")
    own = progress(query, annotator=annotator)
    assert (own.stop.streak, own.stop.met) == (100, True)
    assert own.seconds_per_image == 1.0


def test_each_annotator_has_their_own_progress(query, annotator, other_annotator):
    judge(query, annotator, range(5), "not_relevant")
    judge(query, other_annotator, range(3), "relevant")
    own, other = (progress(query, annotator=one) for one in (annotator, other_annotator))
    assert (own.stop.judged, own.stop.relevant, own.stop.streak) == (5, 0, 5)
    assert (other.stop.judged, other.stop.relevant, other.stop.streak) == (3, 3, 0)
    # One vote each: a tie, which is not relevant.
    assert (progress(query).stop.judged, progress(query).stop.relevant) == (5, 0)
    assert [(one.username, one.progress.stop.judged) for one in annotators_of(query)] == [
        ("ann", 5),
        ("otto", 3),
    ]


def test_overall_progress_is_the_consensus(query, annotator, other_annotator, reviewer):
    judge(query, annotator, [0, 1, 2], "relevant")
    judge(query, other_annotator, [0, 2], "relevant")
    judge(query, other_annotator, [1], "unsure")
    judge(query, reviewer, [2], "not_relevant")
    overall = progress(query)
    stop = overall.stop
    assert (stop.judged, stop.relevant, overall.unsure, stop.streak) == (3, 1, 1, 2)


def test_overall_progress_agrees_with_the_pure_rules_on_random_votes(
    query, annotator, other_annotator, reviewer, admin
):
    dice = random.Random(7)
    people = [annotator, other_annotator, reviewer, admin]
    for number in dice.sample(range(120), 60):
        for person in dice.sample(people, dice.randint(1, 4)):
            judge(query, person, [number], dice.choice(["relevant", "not_relevant", "unsure"]))
    labels = []
    for number in range(120):
        votes = [
            Vote(j.annotator_id, j.annotator.role, j.relevance, j.updated_at)
            for j in Judgment.objects.filter(query=query, image=FIRST_ID + number)
        ]
        if votes:
            relevant = consensus(votes).relevant
            labels.append((number + 1, "relevant" if relevant else "not_relevant"))
    expected = stop_state(labels, length=120, complete=True)
    assert progress(query).stop == expected


def test_a_filtered_list_is_exhausted_when_every_candidate_is_judged(
    images, open_query, annotator, admin
):
    toad = make_species("Bufo bufo")
    make_images(4, first=200, species=toad)
    query = open_query(species=[toad])
    judge(query, annotator, [200, 201], "relevant")
    judge(query, annotator, [202], "not_relevant")
    assert progress(query, annotator=annotator).stop.rule == "none"
    withdraw(admin, 203)
    own = progress(query, annotator=annotator)
    assert (own.stop.exhausted, own.stop.met, own.stop.rule) == (True, True, "exhausted")
    assert (own.stop.remaining, own.stop.next_rank) == (0, None)
    # Images without an embedding, or behind a list's end, keep it from that.
    make_images(1, first=204, species=toad, embedded=False)
    other = open_query("a frog", species=[toad])
    judge(other, annotator, [200, 201, 202], "relevant")
    own = progress(other, annotator=annotator)
    assert (own.stop.length, own.stop.remaining, own.stop.exhausted) == (3, 0, False)


def test_after_a_new_list_the_judgments_count_by_their_new_rank(query, annotator, admin):
    judge(query, annotator, range(110, 120), "not_relevant")
    assert progress(query, annotator=annotator).stop.streak == 0
    query_update(query=query, by=admin, text="other")
    building = progress(fresh(query), annotator=annotator)
    assert (building.stop.length, building.stop.judged, building.stop.met) == (0, 0, False)
    run_jobs()
    assert progress(fresh(query), annotator=annotator).stop.streak == 10


def test_handing_in_needs_the_stop_rule_or_a_note(
    images, open_query, annotator, other_annotator, settings
):
    settings.STOP_STREAK, settings.MINIMUM_LABELS = 2, 3
    query = open_query()
    judge(query, annotator, [0, 1], "not_relevant")
    with pytest.raises(TransitionRefused, match="2 of 2 negatives in a row, 2 of 3 labels"):
        query_transition(query=query, to_state="submitted", by=annotator)
    with pytest.raises(TransitionRefused, match="Only annotators who have judged"):
        query_transition(query=query, to_state="submitted", by=other_annotator, note="bored")
    judge(query, annotator, [2], "not_relevant")
    assert query_transition(query=query, to_state="submitted", by=annotator).state == "submitted"


def withdraw(by: Any, *numbers: int) -> None:
    for number in numbers:
        ImageWithdrawal.objects.create(
            image_id=FIRST_ID + number, withdrawn_by=by, withdrawn_at=timezone.now()
        )


def test_withdrawn_images_count_nowhere_and_break_no_streak(query, annotator, admin):
    judge(query, annotator, [*range(5), *range(6, 10)], "not_relevant")
    judge(query, annotator, [3], "relevant")
    assert progress(query, annotator=annotator).stop.streak == 1
    withdraw(admin, 3, 5)
    for found in (progress(query, annotator=annotator), progress(query)):
        assert (found.stop.length, found.stop.judged, found.stop.relevant) == (118, 8, 0)
        assert (found.stop.streak, found.stop.prefix, found.stop.next_rank) == (8, 10, 11)
        assert found.stop.remaining == 110
    ImageWithdrawal.objects.update(restored_at=timezone.now(), restored_by=admin)
    found = progress(query, annotator=annotator)
    assert (found.stop.length, found.stop.streak, found.stop.relevant) == (120, 1, 1)


def test_what_is_judged_elsewhere_does_not_move_the_streak(query, annotator, other_annotator):
    judge(query, annotator, range(4), "not_relevant")
    record(
        query,
        annotator,
        item(4, "relevant", source="search"),
        item(5, "relevant", source="similar"),
    )
    for found in (progress(query, annotator=annotator), progress(query)):
        assert (found.stop.prefix, found.stop.streak, found.stop.next_rank) == (4, 4, 7)
        assert (found.stop.judged, found.stop.relevant) == (6, 2)
    # To the consensus they count as soon as somebody labels them in the list.
    judge(query, other_annotator, [5], "relevant")
    assert (progress(query).stop.prefix, progress(query).stop.streak) == (6, 0)
    assert progress(query, annotator=annotator).stop.streak == 4
    judge(query, annotator, [6], "not_relevant")
    found = progress(query, annotator=annotator)
    assert (found.stop.prefix, found.stop.streak) == (7, 1)
    # A correction of what was labeled in the list keeps its place there.
    record(query, annotator, item(6, "unsure", source="search"))
    found = progress(query, annotator=annotator)
    assert (found.stop.prefix, found.stop.streak) == (7, 1)


def test_a_minimum_is_asked_for_where_no_filter_bounds_the_list(
    images, open_query, annotator, settings
):
    settings.STOP_STREAK, settings.MINIMUM_LABELS = 3, 5
    toad = make_species("Bufo bufo")
    make_images(4, first=200, species=toad)
    query, filtered = open_query(), open_query("a toad", species=[toad])
    judge(query, annotator, range(4), "not_relevant")
    stop = progress(query, annotator=annotator).stop
    assert (stop.streak_met, stop.minimum, stop.minimum_met, stop.rule) == (True, 5, False, "none")
    judge(query, annotator, [4], "not_relevant")
    stop = progress(query, annotator=annotator).stop
    assert (stop.minimum_met, stop.rule) == (True, "streak")
    judge(filtered, annotator, [200, 201, 202], "not_relevant")
    stop = progress(filtered, annotator=annotator).stop
    assert (stop.minimum, stop.minimum_met, stop.rule) == (0, True, "streak")


def test_active_time_is_ones_own_and_keeps_what_was_taken_back(query, annotator, other_annotator):
    record(query, annotator, item(0, "relevant", seconds=4), item(1, "relevant", seconds=0))
    record(query, annotator, item(0, "unsure", seconds=2), item(1, None, seconds=3))
    record(query, other_annotator, item(0, "relevant", seconds=1))
    own = progress(query, annotator=annotator)
    assert (own.active_seconds, own.seconds_per_image) == (9, 6)
    both = progress(query)
    assert (both.active_seconds, both.seconds_per_image) == (10, 3.5)
    record(query, annotator, item(0, None, seconds=1))
    record(query, other_annotator, item(0, None, seconds=1))
    assert [(one.username, one.progress.active_seconds) for one in annotators_of(query)] == [
        ("ann", 10),
        ("otto", 2),
    ]
    assert progress(query, annotator=annotator).seconds_per_image is None
