"""A release's own certificate: a bound over all its queries together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, pairwise
from math import inf
from operator import attrgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

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
    """A key that selected the images of audits."""

    key: str
    """Hexadecimal."""
    share: float
    """The share of unjudged images that it selects."""


@dataclass(frozen=True, slots=True)
class ReleaseCertificate:
    """What the audits of a release bound, by the release's labels."""

    confidence: float
    queries: int
    """Released queries that it covers."""
    queries_left_out: int
    """Released queries without an audit of their present candidate list."""
    queries_besides: int
    """Audited queries that it doesn't cover; their hits count."""
    keys: list[SelectionKey]
    """In the order of their first use by query id."""
    fraction: float
    """The least share among them."""
    unjudged: int
    """Pairs that could be selected."""
    judged: int
    """How many of these have a judgment in the release, drawn or not."""
    drawn: int
    """Pairs that were selected."""
    hits: int
    """How many of these were judged relevant or unsure, or weren't judged."""
    not_judged: int
    """How many of the hits have no judgment."""
    found_at_audit: int
    """Relevant pairs of the pools that no audit could select, since they were judged before it."""
    found: int
    """Relevant pairs of the pools in the release."""
    seeds: int
    """Known positives that were shown to people who hadn't judged them."""
    recognized: int
    """How many of these they judged relevant."""
    sensitivity_at_least: float | None
    """A lower bound, from the seeds, on the share of relevant images that people recognize; None
    with fewer than LEAST_SEEDS seeds, where the bound assumes that people recognize all."""
    missing_at_most: int | None
    """An upper bound on the relevant pairs among those that could be selected. Without seeds, and
    where all of these are judged, pairs that everybody judged not relevant count as such."""
    recall_at_least: float | None
    """found / (found_at_audit + missing_at_most); None where this bounds nothing, see
    `labeling.certificates.bounds.release_recall_at_least`."""

    @property
    def complete(self) -> bool:
        """Whether everything that could be selected is judged, so that nothing is left to bound."""
        return self.judged == self.unjudged

    @property
    def unknown_at_most(self) -> int | None:
        """An upper bound on the relevant pairs of the pools that no label of the release knows of;
        None where the audits bound nothing."""
        if self.missing_at_most is None:
            return None
        left = self.found_at_audit + self.missing_at_most - self.found
        return left if left >= 0 else None


def waiting_images(snapshot: Snapshot) -> int:
    """How many images that were drawn from released queries still waited for a judgment when the
    release was made: with any, the audit isn't done, and a recall by it means nothing. Draws that
    nobody can judge any more, of withdrawn images or rejected queries, aren't among them.
    """
    if not snapshot.has_table("audited"):
        return 0
    [(waiting,)] = snapshot.sql(
        "SELECT count(*) FROM audited JOIN queries USING (query_id) "
        "WHERE drawn AND label = '' AND NOT withdrawn"
    ).fetchall()
    return int(waiting)


def possible_images(
    snapshot: Snapshot, certificate: ReleaseCertificate
) -> dict[int, npt.NDArray[np.int64]]:
    """The images among which `unknown_at_most` are: by the id of each query that the certificate
    covers those of its pool, ascending, that may be relevant though no label says so.
    """
    # What everybody judged not relevant isn't, where people are taken to recognize all.
    trusted = certificate.sensitivity_at_least is None or certificate.complete
    table = snapshot.sql(_POSSIBLE, trusted=trusted).to_arrow_table()
    query_ids, image_ids = (table[name].to_numpy() for name in ("query_id", "image_id"))
    covered = sorted(audit.query_id for audit in snapshot.release_audits() if audit.covers)
    edges = np.searchsorted(query_ids, [*covered, np.iinfo(np.int64).max])
    return {
        query_id: image_ids[start:stop]
        for query_id, (start, stop) in zip(covered, pairwise(edges.tolist()), strict=True)
    }


_POSSIBLE: Final = """
SELECT audited.query_id, audited.image_id
  FROM audited
  JOIN (SELECT DISTINCT query_id FROM release_audits WHERE covers) USING (query_id)
  LEFT JOIN pairs USING (query_id, image_id)
  LEFT JOIN (SELECT query_id, image_id, bool_and(relevance = 'not_relevant') AS refused
               FROM judgments GROUP BY ALL) USING (query_id, image_id)
 WHERE NOT withdrawn AND NOT coalesce(relevant, false)
   AND NOT ($trusted AND coalesce(refused, false))
 ORDER BY ALL
"""


def release_certificate(snapshot: Snapshot) -> ReleaseCertificate | None:
    """The certificate of a release; None where none of its queries was audited. Memory grows with
    the relevant pairs alone.
    """
    audits = list(snapshot.release_audits())
    covered = {audit.query_id for audit in audits if audit.covers}
    if not covered:
        return None
    audited = {audit.query_id for audit in audits}
    relevant = {
        (pair.query_id, pair.image_id)
        for pair in snapshot.pairs()
        if pair.relevant and pair.rank is not None and pair.query_id in covered
    }
    found = len(relevant)
    unjudged = drawn = hits = not_judged = unknown = judged = negative = 0
    votes = groupby(snapshot.judgments(), key=attrgetter("query_id", "image_id"))
    judged_pair, judgments = next(votes, _NO_MORE)
    for image in snapshot.audited():
        if image.query_id not in audited:
            continue
        if not image.audit:
            unknown += 1
            continue
        pair = (image.query_id, image.image_id)
        while judged_pair < pair:
            judged_pair, judgments = next(votes, _NO_MORE)
        if judged_pair == pair:
            judged += 1
            negative += all(judgment.relevance == "not_relevant" for judgment in judgments)
        relevant.discard(pair)
        unjudged += 1
        drawn += image.drawn
        hits += image.drawn and image.label != "not_relevant"
        not_judged += image.drawn and not image.label
    shown = [seed.relevance for seed in snapshot.seeds() if seed.query_id in audited]
    recognized = shown.count("relevant")
    seeds = (recognized, len(shown)) if len(shown) >= LEAST_SEEDS else None
    confidence = snapshot.header.confidence
    keys = list(dict.fromkeys(SelectionKey(audit.key, audit.share) for audit in audits))
    fraction = min(key.share for key in keys)
    # A pair that had a judgment or was withdrawn at the audit, and has no judgment now, may be
    # relevant.
    found_at_audit = len(relevant) + unknown
    bound: dict[str, Any] = {
        "hits": hits,
        "fraction": fraction,
        "seeds": seeds,
        "possible": unjudged - negative if seeds is None or judged == unjudged else unjudged,
        "confidence": confidence,
    }
    return ReleaseCertificate(
        confidence=confidence,
        queries=len(covered),
        queries_left_out=len(snapshot.labeled_queries.keys() - covered),
        queries_besides=len(audited - covered),
        keys=keys,
        fraction=fraction,
        unjudged=unjudged,
        judged=judged,
        drawn=drawn,
        hits=hits,
        not_judged=not_judged,
        found_at_audit=found_at_audit,
        found=found,
        seeds=len(shown),
        recognized=recognized,
        sensitivity_at_least=None
        if seeds is None
        else sensitivity_at_least(*seeds, confidence=1 - SEEDS_SHARE * (1 - confidence)),
        missing_at_most=release_missing_at_most(**bound),
        recall_at_least=release_recall_at_least(
            found=found, found_at_audit=found_at_audit, **bound
        ),
    )
