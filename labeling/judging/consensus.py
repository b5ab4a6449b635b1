"""One relevance per (query, image) out of several people's judgments, and their agreement."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from statistics import median
from typing import Any, Final, Literal, TypeVar

from labeling.candidates.stopping import RELEVANCES, RELEVANT, UNSURE
from labeling.judging.grades import grade_of

#: Roles whose judgment settles a pair, whatever the annotators said.
DECIDING_ROLES: Final[frozenset[str]] = frozenset({"reviewer", "admin"})

DecidedBy = Literal["reviewer", "majority", "tie"]
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Vote:
    """The current judgment of one person on one (query, image)."""

    annotator: int
    """The person's id."""
    role: str
    """"annotator", "reviewer" or "admin" (any case)."""
    relevance: str
    """"relevant", "not_relevant" or "unsure"."""
    at: Any = 0
    """When it was given: anything that can be ordered (a datetime, seconds)."""
    grade: int | None = None
    """From 0 to 3; None where the person gave none."""


@dataclass(frozen=True, slots=True)
class Consensus:
    """The label of one (query, image) and how it was decided."""

    relevant: bool
    decided_by: DecidedBy
    unsure: bool
    """For review: the deciding reviewer is unsure or, without a reviewer, anybody is."""
    votes: int
    """How many people judged the pair."""
    grade: int
    """From 0 to 3, see `consensus`; 0 or 3 where nobody graded."""


def consensus(votes: Iterable[Vote]) -> Consensus:
    """The relevance of one (query, image).

    A reviewer's or admin's judgment decides where there is one (the latest of several; at the same
    instant the one of the higher id); else the majority of relevant against the rest, where unsure
    counts as not relevant; a tie is a reasonable doubt and so not relevant. The grade is the median
    of those that say what was decided, rounded down, or that of the reviewer who decided; a vote
    without one counts as `grades.grade_of` says.

    ValueError: no votes, two votes of one person, or an unknown relevance.
    """
    people: set[int] = set()
    positives = 0
    unsure = False
    decisive: Vote | None = None
    grades: dict[bool, list[int]] = {True: [], False: []}
    for vote in votes:
        if vote.relevance not in RELEVANCES:
            raise ValueError(f"unknown relevance: {vote.relevance!r}")
        if vote.annotator in people:
            raise ValueError(f"annotator {vote.annotator} votes twice")
        people.add(vote.annotator)
        positives += vote.relevance == RELEVANT
        grades[vote.relevance == RELEVANT].append(grade_of(vote.grade, vote.relevance))
        unsure = unsure or vote.relevance == UNSURE
        if vote.role.lower() in DECIDING_ROLES and (
            decisive is None or (vote.at, vote.annotator) > (decisive.at, decisive.annotator)
        ):
            decisive = vote
    if not people:
        raise ValueError("a consensus needs at least one vote")
    if decisive is not None:
        return Consensus(
            relevant=decisive.relevance == RELEVANT,
            decided_by="reviewer",
            unsure=decisive.relevance == UNSURE,
            votes=len(people),
            grade=grade_of(decisive.grade, decisive.relevance),
        )
    negatives = len(people) - positives
    return Consensus(
        relevant=positives > negatives,
        decided_by="tie" if positives == negatives else "majority",
        unsure=unsure,
        votes=len(people),
        grade=int(median(grades[positives > negatives])),
    )


def consensus_by_key(votes: Iterable[tuple[Key, Vote]]) -> Iterator[tuple[Key, Consensus]]:
    """The consensus of each key of a stream in which the votes of one key stand together.

    A key is typically (query id, image id). Holds the votes of one key at a time.
    """
    for key, group in groupby(votes, key=itemgetter(0)):
        yield key, consensus(vote for _, vote in group)
