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
    """Whether these are all images of its filter."""
    rounds: dict[int | None, AuditRound]
    """By number, in order; under None a round without draws, of what was unjudged after the last
    one."""
    found: int
    """Relevant images of the pool in the release."""
    waiting: int
    """Images that its rounds displayed and that nobody has judged: with any, the audit isn't done,
    and a recall by it means nothing."""
    missing_at_most: int
    recall_at_least: float | None
    """None where nothing is found."""


def certificates(snapshot: Snapshot) -> Iterator[QueryCertificate]:
    """The certificate of each query with rounds, by query id; holds one pool in memory.

    ValueError: impossible counts, which an unchanged snapshot doesn't have.
    """
    for rounds, pool in audits(snapshot):
        yield certificate(snapshot, rounds, pool)


def certificate_of(snapshot: Snapshot, query_id: int) -> tuple[QueryCertificate, list[int]] | None:
    """The certificate of one query, and the images of its pool, ascending, that may be relevant
    though no label says so; None where it has none. ValueError as `certificates`."""
    if not snapshot.has_table("pools"):
        return None
    rounds = [drawn for drawn in snapshot.rounds() if drawn.query_id == query_id]
    statement = "SELECT * FROM pools WHERE query_id = $query_id ORDER BY rank"
    rows = snapshot.sql(statement, query_id=query_id).fetchall() if rounds else []
    if not rows:
        return None
    pool = [PoolImage(*row) for row in rows]
    unknown = (one for one in pool if one.label in ("", "undecided") and not one.withdrawn)
    return certificate(snapshot, rounds, pool), sorted(one.image_id for one in unknown)


def audits(snapshot: Snapshot) -> Iterator[tuple[list[DrawnRound], list[PoolImage]]]:
    """The rounds of each query that has a pool, and the pool, by query id."""
    rounds: dict[int, list[DrawnRound]] = defaultdict(list)
    for drawn_round in snapshot.rounds():
        rounds[drawn_round.query_id].append(drawn_round)
    for query_id, images in groupby(snapshot.pools(), key=attrgetter("query_id")):
        yield rounds[query_id], list(images)


def certificate(
    snapshot: Snapshot, rounds: Sequence[DrawnRound], pool: Sequence[PoolImage]
) -> QueryCertificate:
    """The certificate of a query, at the confidence of the release. ValueError: impossible
    counts."""
    counted = counts([drawn_round.round for drawn_round in rounds], pool)
    found = sum(image.label == "relevant" and _counts_for_pool(image) for image in pool)
    in_order, confidence = list(counted.values()), snapshot.header.confidence
    return QueryCertificate(
        query=snapshot.queries[pool[0].query_id],
        pool=len(pool),
        whole=all(drawn_round.whole for drawn_round in rounds),
        rounds=counted,
        found=found,
        waiting=sum(image.round > 0 and not (image.label or image.withdrawn) for image in pool),
        missing_at_most=missing_at_most(in_order, found=found, confidence=confidence),
        recall_at_least=recall_at_least(in_order, found=found, confidence=confidence),
    )


def counts(numbers: Sequence[int], pool: Sequence[PoolImage]) -> dict[int | None, AuditRound]:
    """The counts of the rounds with these ascending numbers, by the release's labels. Where an
    image that the last round left undrawn was judged or withdrawn since, also the counts of a round
    without draws, under None. ValueError: a count that the others don't allow.
    """
    counted: dict[int | None, AuditRound] = {
        number: _counts(pool, [image.drawable >= number for image in pool], number)
        for number in numbers
    }
    last = max(numbers, default=0)
    undrawn = [image.drawable >= last and not image.round for image in pool]
    left = [
        drawable and not image.label and not image.withdrawn
        for image, drawable in zip(pool, undrawn, strict=True)
    ]
    if left != undrawn:
        counted[None] = _counts(pool, left, sys.maxsize)
    return counted


def _counts(pool: Sequence[PoolImage], drawable: Sequence[bool], number: int) -> AuditRound:
    """The counts of a round that could draw the images marked in `drawable`."""
    drawn = [image for image in pool if image.round == number]
    return AuditRound(
        found=sum(
            not could_draw and _counts_for_pool(image) and _was_found(image, number)
            for image, could_draw in zip(pool, drawable, strict=True)
        ),
        unjudged=sum(drawable),
        drawn=len(drawn),
        hits=sum(image.label != "not_relevant" for image in drawn),
    )


def _counts_for_pool(image: PoolImage) -> bool:
    """Whether an image counts: one that was withdrawn before a round displayed it doesn't."""
    return not image.withdrawn or image.round > 0


def _was_found(image: PoolImage, number: int) -> bool:
    """Whether an image that a round couldn't draw counts as found when the round began. An earlier
    draw counts until it is decided; an image that no round drew and whose votes differ doesn't, as
    by the consensus."""
    undecided_draw = image.label == "undecided" and 0 < image.round < number
    return image.label in ("relevant", "") or undecided_draw
