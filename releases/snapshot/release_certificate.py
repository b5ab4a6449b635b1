"""A release's own certificate: what is bounded of all its queries together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from math import inf
from operator import attrgetter
from typing import Any, Final

from labeling.certificates.bounds import (
    SEEDS_SHARE,
    release_missing_at_most,
    release_recall_at_least,
    sensitivity_at_least,
)
from releases.snapshot.snapshot import Snapshot

#: Fewer seeds say too little: the bound is then stated without them.
LEAST_SEEDS: Final = 30
#: After the last judged pair and its judgments.
_NO_MORE: Final[tuple[tuple[float, float], Any]] = ((inf, inf), ())


@dataclass(frozen=True, slots=True)
class SelectionKey:
    """What audits selected by."""

    key: str
    """Hexadecimal."""
    share: float
    """Of what was unjudged, this was selected."""


@dataclass(frozen=True, slots=True)
class ReleaseCertificate:
    """What the audits of a release bound, by the labels that stand in it."""

    confidence: float
    queries: int
    """Released queries that it speaks of."""
    queries_left_out: int
    """Released queries without an audit of their present candidate list."""
    queries_besides: int
    """Audited queries that it doesn't speak of; their hits count."""
    keys: list[SelectionKey]
    """In the order of their first use by query id."""
    fraction: float
    """The least share among them."""
    unjudged: int
    """Pairs that could be selected."""
    judged: int
    """Of these, the ones that have a judgment in the release, drawn or not."""
    drawn: int
    """Pairs that were selected."""
    hits: int
    """Of these, the ones not judged not relevant."""
    not_judged: int
    """Of the hits, the ones without a judgment."""
    found_at_audit: int
    """Relevant pairs of the pools that no audit could select, as they were judged before it."""
    found: int
    """Relevant pairs of the pools in the release."""
    seeds: int
    """Known positives that were shown to people who hadn't judged them."""
    recognized: int
    """Of these, judged relevant."""
    sensitivity_at_least: float | None
    """What the seeds say of relevant images that people recognize; None where there are fewer than
    LEAST_SEEDS: the bound takes them for all recognized then."""
    missing_at_most: int | None
    """Relevant pairs that could be selected: never more than are left once those that everybody
    judged not relevant are taken off. Those are taken for seen rightly without seeds, and where
    all is judged."""
    recall_at_least: float | None
    """found / (found_at_audit + missing_at_most); None where it says nothing, see
    `labeling.certificates.bounds.release_recall_at_least`."""

    @property
    def complete(self) -> bool:
        """Whether everything that could be selected is judged, so that nothing is left to bound."""
        return self.judged == self.unjudged


def release_certificate(snapshot: Snapshot) -> ReleaseCertificate | None:
    """The certificate of a release; None where none of its queries was audited. Memory grows with
    the relevant pairs alone.
    """
    audits = list(snapshot.release_audits())
    covered = {one.query_id for one in audits if one.covers}
    if not covered:
        return None
    named = {one.query_id for one in audits}
    relevant = {
        (one.query_id, one.image_id)
        for one in snapshot.pairs()
        if one.relevant and one.rank is not None and one.query_id in covered
    }
    found = len(relevant)
    unjudged = drawn = hits = not_judged = unknown = since = negative = 0
    votes = groupby(snapshot.judgments(), key=attrgetter("query_id", "image_id"))
    judged_pair, given = next(votes, _NO_MORE)
    for image in snapshot.audited():
        if image.query_id not in named:
            continue
        if not image.audit:
            unknown += 1
            continue
        pair = (image.query_id, image.image_id)
        while judged_pair < pair:
            judged_pair, given = next(votes, _NO_MORE)
        if judged_pair == pair:
            since += 1
            negative += all(one.relevance == "not_relevant" for one in given)
        relevant.discard(pair)
        unjudged += 1
        drawn += image.drawn
        hits += image.drawn and image.label != "not_relevant"
        not_judged += image.drawn and not image.label
    judged = [one.relevance for one in snapshot.seeds() if one.query_id in named]
    seeds = (judged.count("relevant"), len(judged)) if len(judged) >= LEAST_SEEDS else None
    confidence = snapshot.header.confidence
    keys = list(dict.fromkeys(SelectionKey(one.key, one.share) for one in audits))
    fraction = min(one.share for one in keys)
    bound: dict[str, Any] = {
        "hits": hits,
        "fraction": fraction,
        "seeds": seeds,
        "possible": unjudged - negative if seeds is None or since == unjudged else unjudged,
        "confidence": confidence,
    }
    return ReleaseCertificate(
        confidence=confidence,
        queries=len(covered),
        queries_left_out=len(snapshot.labeled_queries.keys() - covered),
        queries_besides=len(named - covered),
        keys=keys,
        fraction=fraction,
        unjudged=unjudged,
        judged=since,
        drawn=drawn,
        hits=hits,
        not_judged=not_judged,
        # What had a judgment or was withdrawn then, and has no judgment now, may be relevant.
        found_at_audit=len(relevant) + unknown,
        found=found,
        seeds=len(judged),
        recognized=judged.count("relevant"),
        sensitivity_at_least=None
        if seeds is None
        else sensitivity_at_least(*seeds, confidence=1 - SEEDS_SHARE * (1 - confidence)),
        missing_at_most=release_missing_at_most(**bound),
        recall_at_least=release_recall_at_least(
            found=found, found_at_audit=len(relevant) + unknown, **bound
        ),
    )
