"""Consensus of several judgments."""

import pytest

from labeling.judging.consensus import (
    Consensus,
    Vote,
    consensus,
    consensus_by_key,
)
from labeling.judging.grades import GRADES, LEAST_RELEVANT, grade_of, relevance_of
from labeling.queries.models import Query

pytestmark = pytest.mark.pure

YES, NO, UNSURE = "relevant", "not_relevant", "unsure"


def annotators(*relevances: str) -> list[Vote]:
    return [Vote(number, "annotator", relevance) for number, relevance in enumerate(relevances, 1)]


@pytest.mark.parametrize(
    ("relevances", "relevant", "decided_by", "unsure"),
    [
        ([YES], True, "majority", False),
        ([NO], False, "majority", False),
        ([UNSURE], False, "majority", True),
        ([YES, YES, NO], True, "majority", False),
        ([YES, YES, UNSURE], True, "majority", True),
        ([YES, NO, UNSURE], False, "majority", True),
        ([YES, NO], False, "tie", False),
        ([YES, UNSURE], False, "tie", True),
        ([YES, YES, NO, UNSURE], False, "tie", True),
    ],
)
def test_annotators_decide_by_majority_and_doubt_is_not_relevant(
    relevances, relevant, decided_by, unsure
):
    assert consensus(annotators(*relevances)) == Consensus(
        relevant=relevant,
        decided_by=decided_by,
        unsure=unsure,
        votes=len(relevances),
        grade=3 * relevant,
    )


@pytest.mark.parametrize("role", ["reviewer", "ADMIN"])
@pytest.mark.parametrize(
    ("relevance", "relevant", "unsure"),
    [(YES, True, False), (NO, False, False), (UNSURE, False, True)],
)
def test_a_reviewer_settles_it_against_any_majority(role, relevance, relevant, unsure):
    opposite = NO if relevant else YES
    votes = [*annotators(opposite, opposite, UNSURE), Vote(9, role, relevance)]
    assert consensus(votes) == Consensus(
        relevant=relevant, decided_by="reviewer", unsure=unsure, votes=4, grade=3 * relevant
    )


def test_a_stream_is_decided_pair_by_pair():
    first, second = annotators(YES, NO)
    stream = iter([((1, 10), first), ((1, 11), first), ((1, 11), second), ((2, 10), second)])
    decided = [(key, result.relevant, result.votes) for key, result in consensus_by_key(stream)]
    assert decided == [((1, 10), True, 1), ((1, 11), False, 2), ((2, 10), False, 1)]


@pytest.mark.parametrize(
    ("votes", "grade"),
    [
        ([(YES, 3), (YES, 2), (NO, 0)], 2),
        ([(YES, 3), (YES, 2), (YES, 3), (NO, 1)], 3),
        ([(YES, None), (YES, 2)], 2),
        ([(NO, 1), (NO, 0), (YES, 3)], 0),
        ([(NO, 1), (NO, 1), (UNSURE, None)], 1),
        # A tie, where only definitely is relevant: the side that says not relevant.
        ([(YES, 3), (NO, 2)], 2),
    ],
)
def test_the_grade_is_the_median_of_those_who_say_what_was_decided(votes, grade):
    given = [
        Vote(number, "annotator", relevance, grade=one)
        for number, (relevance, one) in enumerate(votes)
    ]
    assert consensus(given).grade == grade
    assert consensus([*given, Vote(9, "reviewer", NO, grade=1)]).grade == 1


def test_what_a_grade_means():
    assert set(LEAST_RELEVANT) == {*filter(None, Query.Grades.values)}
    relevant = {
        kind: [grade for grade in GRADES if relevance_of(grade, kind) == "relevant"]
        for kind in LEAST_RELEVANT
    }
    assert relevant == {"partly": [3, 2], "definitely": [3], "evidence": [3, 2]}
    assert [grade_of(None, one) for one in ("relevant", "not_relevant", "unsure")] == [3, 0, 0]
    assert grade_of(1, "not_relevant") == 1


def test_the_latest_of_several_reviewers_decides_in_any_order_of_rows():
    votes = [Vote(1, "reviewer", NO, at=5.0), Vote(2, "admin", YES, at=6.0)]
    assert consensus(votes).relevant is consensus(reversed(votes)).relevant is True
    # At the same instant, the higher id.
    votes = [Vote(1, "reviewer", YES, at=5.0), Vote(2, "reviewer", NO, at=5.0)]
    assert consensus(votes).relevant is consensus(reversed(votes)).relevant is False


def test_impossible_votes_are_refused():
    for votes, message in (
        ([], "at least one vote"),
        ([Vote(1, "annotator", YES), Vote(1, "annotator", NO)], "annotator 1 votes twice"),
        ([Vote(1, "annotator", "maybe")], "unknown relevance: 'maybe'"),
    ):
        with pytest.raises(ValueError, match=message):
            consensus(votes)
