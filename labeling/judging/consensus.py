"""One relevance per (query, image) out of several people's judgments, and their agreement."""

from collections import Counter
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


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two annotators over the images that both judged."""

    images: int
    observed: float
    """Share of the images on which both say the same (0..1)."""
    expected: float
    """The share that chance alone would give, from each one's own frequencies (0..1)."""
    kappa: float | None
    """(observed - expected) / (1 - expected); None where chance alone agrees on all."""


def agreement(pairs: Iterable[tuple[str, str]]) -> Agreement:
    """Cohen's kappa over the (first's, second's) relevance of each doubly judged image.

    Unsure counts as not relevant, as in a release. Source: J. Cohen, "A coefficient of agreement
    for nominal scales", 1960. No pairs give zero images and no kappa. ValueError: an unknown
    relevance.
    """
    table: Counter[tuple[bool, bool]] = Counter()
    for first, second in pairs:
        for relevance in (first, second):
            if relevance not in RELEVANCES:
                raise ValueError(f"unknown relevance: {relevance!r}")
        table[first == RELEVANT, second == RELEVANT] += 1
    total = table.total()
    if total == 0:
        return Agreement(images=0, observed=0.0, expected=0.0, kappa=None)
    same = table[True, True] + table[False, False]
    first_yes = table[True, True] + table[True, False]
    second_yes = table[True, True] + table[False, True]
    # In whole numbers up to the last division, so that "chance agrees on everything" is an exact
    # test.
    chance = first_yes * second_yes + (total - first_yes) * (total - second_yes)
    squared = total * total
    kappa = None if chance == squared else (same * total - chance) / (squared - chance)
    return Agreement(images=total, observed=same / total, expected=chance / squared, kappa=kappa)
