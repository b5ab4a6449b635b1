"""The certificates of a release's queries, counted from the rounds and pools of its snapshot."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final

from labeling.certificates.bounds import AuditRound, missing_at_most, recall_at_least
from releases.snapshot.snapshot import DrawnRound, PoolImage, Snapshot, SnapshotQuery

#: `PoolImage.label` of an image on which all judgments agree.
UNANIMOUS: Final = {"relevant": "relevant", "not_relevant": "not_relevant", "unsure": "undecided"}


@dataclass(frozen=True, slots=True)
class QueryCertificate:
    """What the audits of one query bound."""

    query: SnapshotQuery
    pool: int
    """How many images the query's candidate list holds."""
    whole: bool
    """Whether these are all of its filter."""
    rounds: dict[int | None, AuditRound]
    """By number, in order; None is what was unjudged after the last round had ended, without draws.
    """
    found: int
    """Relevant images of the pool in the release."""
    missing_at_most: int
    recall_at_least: float | None
    """None where nothing is found."""


def certificates(snapshot: Snapshot) -> Iterator[QueryCertificate]:
    """The certificate of each query with rounds, by query id; a pool in memory at a time.

    ValueError: counts that can't be, which a snapshot as it was written doesn't give.
    """
    for rounds, pool in audits(snapshot):
        yield certificate(snapshot, rounds, pool)


def audits(snapshot: Snapshot) -> Iterator[tuple[list[DrawnRound], list[PoolImage]]]:
    """The rounds of each query that has a pool, and the pool, by query id."""
    rounds: dict[int, list[DrawnRound]] = defaultdict(list)
    for one in snapshot.rounds():
        rounds[one.query_id].append(one)
    for query_id, images in groupby(snapshot.pools(), key=attrgetter("query_id")):
        yield rounds[query_id], list(images)


def certificate(
    snapshot: Snapshot, rounds: Sequence[DrawnRound], pool: Sequence[PoolImage]
) -> QueryCertificate:
    """The certificate of a query, at the confidence of the release. ValueError: as certificates."""
    counted = counts([one.round for one in rounds], pool)
    found = sum(one.label == "relevant" and _in_pool(one) for one in pool)
    in_order, confidence = list(counted.values()), snapshot.header.confidence
    return QueryCertificate(
        query=snapshot.queries[pool[0].query_id],
        pool=len(pool),
        whole=all(one.whole for one in rounds),
        rounds=counted,
        found=found,
        missing_at_most=missing_at_most(in_order, found=found, confidence=confidence),
        recall_at_least=recall_at_least(in_order, found=found, confidence=confidence),
    )


def counts(numbers: Sequence[int], pool: Sequence[PoolImage]) -> dict[int | None, AuditRound]:
    """The counts of the rounds of these ascending numbers, by the labels that stand; where
    something that the last one could draw was judged or withdrawn undrawn, also those of a round
    without draws from what is left. ValueError: a count that the others don't allow.
    """
    counted: dict[int | None, AuditRound] = {
        number: _counts(pool, [one.drawable >= number for one in pool], number)
        for number in numbers
    }
    last = max(numbers, default=0)
    waiting = [one.drawable >= last and not one.round for one in pool]
    left = [
        drawable and not one.label and not one.withdrawn
        for one, drawable in zip(pool, waiting, strict=True)
    ]
    if left != waiting:
        counted[None] = _counts(pool, left, sys.maxsize)
    return counted


def _counts(pool: Sequence[PoolImage], drawable: Sequence[bool], number: int) -> AuditRound:
    """The counts of a round that could draw the images so marked."""
    drawn = [one for one in pool if one.round == number]
    return AuditRound(
        found=sum(
            not could and _in_pool(one) and _known(one, number)
            for one, could in zip(pool, drawable, strict=True)
        ),
        unjudged=sum(drawable),
        drawn=len(drawn),
        hits=sum(one.label != "not_relevant" for one in drawn),
    )


def _in_pool(one: PoolImage) -> bool:
    """What was withdrawn before anybody saw it drawn is not."""
    return not one.withdrawn or one.round > 0


def _known(one: PoolImage, number: int) -> bool:
    """Whether an image that a round couldn't draw counts as found when it began. Drawn before, it
    does until it is decided; ranked images whose votes differ are not relevant, as the consensus
    has it."""
    undecided_draw = one.label == "undecided" and 0 < one.round < number
    return one.label in ("relevant", "") or undecided_draw
