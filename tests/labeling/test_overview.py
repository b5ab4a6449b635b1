"""The dashboard's figures, and what a reviewer is shown to decide."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import Http404
from django.utils import timezone

from labeling.judging.access import get_query_for
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from labeling.review.overview import (
    SORT_KEYS,
    QueryOverview,
    annotator_activity,
    overview_of_keys,
    query_keys_sorted,
)
from labeling.review.selectors import images_to_review, query_agreement
from retrieval.corpus.models import Image, ImageWithdrawal
from tests.labeling.conftest import FIRST_ID, make_images
from tests.labeling.judging import item, judge, record


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(6)


@pytest.fixture
def three(images, open_query, new_query) -> list[Query]:
    """A red toad that is open, a newt that is open, and a green toad that is a draft."""
    return [
        open_query("a red toad", query_id=3, split="val"),
        open_query("a newt", query_id=1, split="test", category="Human Impact"),
        new_query("a green toad", query_id=2, split="test"),
    ]


def queries_overview(user: Any, **arguments: Any) -> list[QueryOverview]:
    return overview_of_keys(query_keys_sorted(user=user, **arguments), user=user)


def ids(user: Any, **arguments: Any) -> list[int]:
    return [row.query.query_id for row in queries_overview(user=user, **arguments)]


def test_reviewers_see_the_consensus_and_annotators_their_own(
    three, annotator, other_annotator, reviewer
):
    judge(three[0], annotator, [0, 1], "relevant")
    judge(three[0], other_annotator, [1, 2], "not_relevant")
    by_id = {row.query.query_id: row for row in queries_overview(user=reviewer)}
    overall = by_id[3].progress.stop
    assert (overall.judged, overall.relevant, overall.streak) == (3, 1, 2)
    assert (overall.length, by_id[3].annotators, overall.met) == (6, 2, False)
    assert by_id[3].last_activity == three[0].judgments.latest("updated_at").updated_at
    draft = by_id[2]
    assert (draft.progress.stop.length, draft.last_activity, draft.can_label) == (0, None, False)
    own = {row.query.query_id: row for row in queries_overview(user=annotator)}[3]
    stop = own.progress.stop
    assert (stop.judged, stop.relevant, stop.streak, own.annotators) == (2, 2, 0, 1)


def test_annotators_see_open_queries_and_those_they_judged_for(
    three, annotator, other_annotator, reviewer, admin
):
    judge(three[0], annotator, [0], "relevant")
    query_transition(query=three[0], to_state="complete", by=admin, note="Enough.")
    assert ids(annotator) == [1, 3]
    assert ids(other_annotator) == [1]
    assert ids(reviewer) == [1, 2, 3]
    assert get_query_for(annotator, three[0].pk) == three[0]
    with pytest.raises(Http404):
        get_query_for(other_annotator, three[0].pk)
    with pytest.raises(Http404):
        get_query_for(annotator, three[2].pk)


def test_filters(three, reviewer):
    for filters, found in (
        ({}, [1, 2, 3]),
        ({"search": "toad"}, [2, 3]),
        ({"search": "3"}, [3]),
        ({"search": "human"}, [1]),
        ({"search": "%"}, []),
        ({"search": "\0toad"}, [2, 3]),
        ({"search": "9" * 30}, []),
        ({"state": "draft"}, [2]),
        ({"state": "nix"}, []),
        ({"category": "Human Impact", "state": ""}, [1]),
        ({"split": "test", "search": "toad"}, [2]),
    ):
        assert ids(reviewer, filters=filters) == found, filters


def test_sorting(three, annotator, reviewer):
    judge(three[0], annotator, [0, 1], "relevant")
    judge(three[1], annotator, [0], "not_relevant")
    for sort, found in (
        ("-query_id", [3, 2, 1]),
        ("text", [2, 1, 3]),
        ("state", [2, 1, 3]),
        ("-labeled", [3, 1, 2]),
        ("relevant", [1, 2, 3]),
        ("-streak", [1, 2, 3]),
        ("-last_activity", [1, 3, 2]),
    ):
        assert ids(reviewer, sort=sort) == found, sort
    for key in SORT_KEYS:
        assert sorted(ids(reviewer, sort=key)) == sorted(ids(reviewer, sort=f"-{key}")) == [1, 2, 3]


def test_many_queries_need_as_many_statements_as_one(
    three, new_query, annotator, reviewer, django_assert_num_queries
):
    judge(three[0], annotator, [0], "relevant")
    with django_assert_num_queries(6):
        assert len(queries_overview(user=reviewer, filters={"search": "red"})) == 1
    for number in range(20):
        new_query(f"query {number}")
    with django_assert_num_queries(7):
        assert len(queries_overview(user=reviewer, sort="-streak")) == 23
    with django_assert_num_queries(4):
        assert len(queries_overview(user=reviewer, sort="-streak")) == 23
    with django_assert_num_queries(7):
        assert len(queries_overview(user=annotator)) == 2


def test_what_each_annotator_did(three, annotator, other_annotator, django_assert_num_queries):
    judge(three[0], annotator, [0, 1, 2], "relevant")
    judge(three[1], annotator, [0], "not_relevant")
    judge(three[0], other_annotator, [0], "unsure")
    with django_assert_num_queries(3):
        annotator_activity()
    with django_assert_num_queries(2):
        last, first = annotator_activity()
    assert (last.username, last.labeled, last.relevant, last.queries) == ("otto", 1, 0, 1)
    assert (first.username, first.labeled, first.relevant, first.queries) == ("ann", 4, 3, 2)
    assert first.seconds_per_image == 1.0


def test_review_shows_doubts_and_disagreements_until_a_reviewer_decides(
    three, annotator, other_annotator, reviewer, django_assert_num_queries
):
    query = Query.objects.get(pk=three[0].pk)
    judge(query, annotator, [0, 3], "relevant")
    judge(query, annotator, [1], "not_relevant")
    judge(query, annotator, [5], "unsure")
    judge(query, other_annotator, [0, 1], "relevant")
    judge(query, other_annotator, [4], "unsure")

    def shown(kind: str = "") -> list[tuple[int, int | None, list[str], bool]]:
        return [
            (
                item.image.pk - FIRST_ID,
                item.rank,
                [vote.relevance for vote in item.votes],
                item.unsure,
            )
            for item in images_to_review(query, kind)
            if not item.decided
        ]

    assert shown() == [
        (1, 2, ["not_relevant", "relevant"], False),
        (4, 5, ["unsure"], True),
        (5, 6, ["unsure"], True),
    ]
    with django_assert_num_queries(2):
        assert [number for number, *_ in shown("unsure")] == [4, 5]
    assert [number for number, *_ in shown("disputed")] == [1]
    judge(query, reviewer, [1, 4], "not_relevant")
    judge(query, reviewer, [5], "unsure")
    assert shown() == [(5, 6, ["unsure", "unsure"], True)]
    # What is decided stays there, so that a reviewer can go back to it.
    assert [(one.image.pk - FIRST_ID, one.decided) for one in images_to_review(query)] == [
        (1, True),
        (4, True),
        (5, False),
    ]


def test_agreement_is_over_the_images_that_both_judged(
    three, annotator, other_annotator, reviewer, django_assert_num_queries
):
    query = three[0]
    judge(query, annotator, [0, 1, 2], "relevant")
    judge(query, annotator, [3, 4], "not_relevant")
    judge(query, other_annotator, [0, 1], "relevant")
    judge(query, other_annotator, [2], "not_relevant")
    judge(query, other_annotator, [3], "unsure")
    judge(query, reviewer, [0, 5], "relevant")
    judge(three[1], other_annotator, [4], "relevant")
    judge(query, annotator, [5], "relevant")
    ImageWithdrawal.objects.create(
        image_id=FIRST_ID + 5, withdrawn_by=reviewer, withdrawn_at=timezone.now()
    )
    with django_assert_num_queries(2):
        agreement = query_agreement(query)
    found = agreement.pairs
    assert (agreement.images, agreement.disputed) == (4, 1)
    # ann and otto: 3 of 4 the same, of 8 judgments 5 relevant: 1 - 7 * 2 / (64 - 25 - 9).
    people = (annotator, other_annotator, reviewer)
    ann, otto, rita = ((person.pk, person.username) for person in people)
    assert [(one.people, one.agreement.items) for one in found] == [
        ((ann, otto), 4),
        ((ann, rita), 1),
        ((otto, rita), 1),
    ]
    assert found[0].agreement.raw == 0.75
    assert found[0].agreement.alpha == pytest.approx(1 - 14 / 30)
    assert found[1].agreement.alpha is None


def test_withdrawn_images_are_nothing_to_review(three, annotator, reviewer):
    judge(three[0], annotator, [0, 1], "unsure")
    ImageWithdrawal.objects.create(
        image_id=FIRST_ID, withdrawn_by=reviewer, withdrawn_at=timezone.now()
    )
    assert [one.image.pk for one in images_to_review(three[0])] == [FIRST_ID + 1]


def test_the_api_gives_a_reviewer_everybodys_votes(
    three, annotator, other_annotator, reviewer, annotator_api, reviewer_api
):
    query = three[0]
    address = f"/api/queries/{query.pk}/review/"
    assert annotator_api.get(address).status_code == 403
    judge(query, annotator, [1], "relevant")
    judge(query, other_annotator, [1, 3], "unsure")
    # Found in a search, and in no list.
    [outside] = make_images(1, first=900)
    record(query, annotator, item(900, "unsure", source="search"))
    judge(query, reviewer, [1], "not_relevant")
    answer = reviewer_api.get(address).json()
    assert (answer["annotator"], answer["query"]["can_label"]) == (reviewer.pk, True)
    assert [(one["rank"], one["relevance"], one["source"]) for one in answer["results"]] == [
        (2, "not_relevant", "list"),
        (4, None, None),
        (None, None, None),
    ]
    first = answer["results"][0]
    assert [(one["username"], one["relevance"], one["decides"]) for one in first["votes"]] == [
        ("ann", "relevant", False),
        ("otto", "unsure", False),
        ("rita", "not_relevant", True),
    ]
    assert (first["score"], first["flags"]) == (1 - 1 / 2048, [])
    kinds = {
        kind: len(reviewer_api.get(f"{address}?kind={kind}").json()["results"])
        for kind in ("unsure", "disputed")
    }
    assert kinds == {"unsure": 3, "disputed": 0}
    assert reviewer_api.get(f"{address}?kind=odd").status_code == 400
    # The image outside the list can be decided as well.
    [decided] = record(query, reviewer, item(900, "relevant", source="search"))
    assert (decided.status, decided.rank) == ("stored", None)
    assert all(one.decided for one in images_to_review(query) if one.image == outside)
