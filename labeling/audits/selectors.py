"""What a query's audits say now, counted again from the draws and the labels that stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from django.conf import settings

from core.sql import fetch_all
from labeling.audits.models import Draw, DrawRound
from labeling.candidates.models import Candidate, CandidateList
from labeling.certificates.bounds import (
    AuditRound,
    missing_at_most,
    more_without_hit,
    recall_at_least,
)
from labeling.certificates.sentences import certificate_sentences
from labeling.judging.consensus import Consensus
from labeling.judging.models import Judgment
from labeling.judging.progress import consensus_on, hand_in_rule
from labeling.queries.models import Query
from retrieval.corpus.models import ImageWithdrawal

#: Draws beyond which a certificate for one query is called out of reach: hours of labeling.
WITHIN_REACH: Final = 1000

_NONE, _NEGATIVE, _DOUBTFUL, _RELEVANT = range(4)
_LABELS: Final = {
    "relevant": _RELEVANT,
    "not_relevant": _NEGATIVE,
    **dict.fromkeys(("", "unsure", "undecided"), _DOUBTFUL),
}
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Certificate:
    """What the rounds bound."""

    sentence: str
    missing_at_most: int
    recall_at_least: float | None
    """None where nothing is found."""
    met: bool
    """Whether the target is certified."""
    more_without_hit: int | None
    """As bounds.more_without_hit."""
    out_of_reach: bool
    """Whether that takes more draws than make sense for a single query."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What audits are to certify."""

    target: float
    """The recall."""
    confidence: float


@dataclass(frozen=True, slots=True)
class AuditState:
    """A query's audits of its present pool."""

    pool: CandidateList
    rounds: list[AuditRound]
    """The last is the one that the next draw belongs to, without draws where it has yet to begin.
    """
    hopeful: list[AuditRound]
    """The same if nothing of `to_judge` is relevant."""
    found: int
    """Relevant in the pool, by the consensus."""
    to_judge: list[int]
    """Images that were displayed and that nobody has judged, in the order of their display; those
    of rounds of earlier lists among them, and none that is withdrawn."""
    last: DrawRound | None
    """The last round that drew from this pool."""
    goes_on: bool
    """Whether the next draw belongs to it."""
    left: Mask
    """By rank less 1: the images that can still be drawn, by everybody's judgments."""
    unjudged: int
    """How many images of the round are neither drawn nor judged, by the judgments that count."""
    aim: Aim

    @property
    def drawn(self) -> int:
        """Draws of all rounds."""
        return sum(audit_round.drawn for audit_round in self.rounds)

    @property
    def hits(self) -> int:
        """Of these, those that nobody has decided to be not relevant."""
        return sum(audit_round.hits for audit_round in self.rounds)

    @property
    def now(self) -> Certificate:
        """What is certain now: what is displayed and not judged counts as a hit."""
        return certificate(self.rounds, self.found, self.aim)

    @property
    def then(self) -> Certificate:
        """What would be certain if nothing of `to_judge` is relevant."""
        return certificate(self.hopeful, self.found, self.aim)


def audit_aim(query: Query) -> Aim:
    """The certificate that the query's rule for handing in asks for, else the settings'."""
    asked, setting = hand_in_rule(query).certificate, query.benchmark.setting
    return Aim(
        target=asked.recall if asked else setting("CERTIFICATE_RECALL"),
        confidence=(asked and asked.confidence) or setting("CERTIFICATE_CONFIDENCE"),
    )


def pool_words(pool: CandidateList) -> str:
    """What the certificate is about: "all 320 images of the species filter"."""
    where = "the species filter" if pool.species_ids else "the corpus"
    images = "1 image" if pool.size == 1 else f"{pool.size:,} images"
    if pool.complete:
        return f"all {images} of {where}" if pool.size > 1 else f"the only image of {where}"
    if pool.size == pool.total:
        return f"{images} of {where}, all that are embedded"
    return f"the first {pool.size:,} of the list, out of {pool.total:,} images of {where}"


# An array is one value; of thousands of ranks Django's own condition would make as many.
_IMAGES: Final = f"""
SELECT image_id FROM {Candidate._meta.db_table} WHERE list_id = %s AND rank = ANY(%s::int[])
"""


def images_at(pool_pk: int, ranks: Mask) -> list[int]:
    """The images of a list at the ranks, less 1, that a mask marks; in one SQL query."""
    rows = fetch_all(_IMAGES, [pool_pk, (ranks.nonzero()[0] + 1).tolist()])
    return [image_id for (image_id,) in rows]


# One row an image of the pool that is judged, drawn or withdrawn, with whether anybody judged it
# and how those did whose judgments count. Empty: votes differ.
_POOL: Final = f"""
SELECT c.rank, c.image_id, label.image_id IS NOT NULL, label.relevance, draw.number, draw.place,
       w.image_id IS NOT NULL
  FROM (SELECT image_id FROM {Judgment._meta.db_table} WHERE query_id = %(query)s
         UNION SELECT image_id FROM {Draw._meta.db_table} WHERE query_id = %(query)s
         UNION SELECT image_id FROM {ImageWithdrawal._meta.db_table} WHERE restored_at IS NULL) one
  JOIN {Candidate._meta.db_table} c
       ON c.list_id = %(list)s AND c.image_id = one.image_id AND c.rank <= %(size)s
  LEFT JOIN (SELECT image_id, CASE WHEN min(vote) <> max(vote) THEN '' ELSE min(vote)
                              END AS relevance
               FROM (SELECT image_id, CASE WHEN annotator_id = coalesce(%(annotator)s, annotator_id)
                                           THEN relevance END AS vote
                       FROM {Judgment._meta.db_table} WHERE query_id = %(query)s) votes
              GROUP BY image_id) label ON label.image_id = c.image_id
  LEFT JOIN (SELECT d.image_id, d.place, r.number FROM {Draw._meta.db_table} d
               JOIN {DrawRound._meta.db_table} r ON r.id = d.round_id
              WHERE d.query_id = %(query)s) draw ON draw.image_id = c.image_id
  LEFT JOIN {ImageWithdrawal._meta.db_table} w
       ON w.image_id = c.image_id AND w.restored_at IS NULL
"""


def audit_state(query: Query, annotator: Any = None) -> AuditState:
    """The audits of the query's current list, which is ready, by everybody's judgments or by one
    annotator's own; at most three SQL queries.

    The pool is the list as long as it is now. Rounds of another list or of a shorter one don't
    count: of what has come since, they have drawn nothing. What they displayed is known, though, so
    that it isn't drawn again, and counts as relevant until somebody judges it.

    A round draws from what nobody had judged and no round had displayed when it began
    (`DrawRound.drawn_from`); what it found before is counted by the labels that stand now. So
    changed labels count in all rounds. A label that was taken back counts as relevant until the
    image is judged again, since no later round draws it. An image that is withdrawn before it was
    displayed leaves the pool, but not the number from which an earlier round drew: a choice of
    withdrawals after its draws must not enlarge the share that they are.

    By an annotator's own judgments what others alone have judged counts as not judged: neither
    their labels nor how many there are can be read from it, and nothing is certified that all
    judgments wouldn't, since more is unjudged and less is found. What is drawn and waits is the
    same for all.
    """
    pool = query.current_list
    if pool is None or not pool.ready:
        raise ValueError("the list isn't ready")
    size = pool.size
    label = np.full(size, _NONE, np.int8)
    shown = np.zeros(size, np.int32)
    withdrawn = np.zeros(size, np.bool_)
    contested: dict[tuple[int, int], int] = {}
    pending = []
    judged = np.zeros(size, np.bool_)
    values = {
        "query": query.pk,
        "list": pool.pk,
        "size": size,
        "annotator": None if annotator is None else annotator.pk,
    }
    for rank, image_id, by_anybody, relevance, number, place, gone in fetch_all(_POOL, values):
        if relevance is not None:
            label[rank - 1] = _LABELS[relevance]
        if number and not (by_anybody or gone):
            pending.append((number, place, rank, image_id))
        judged[rank - 1] = by_anybody
        if relevance == "":
            contested[query.pk, image_id] = rank
        shown[rank - 1] = number or 0
        withdrawn[rank - 1] = gone
    for pair, agreed in consensus_on(contested):
        label[contested[pair] - 1] = _LABELS[contested_label(agreed)]
    pending.sort()
    rounds = list(query.draw_rounds.filter(candidate_list=pool, size=size).order_by("number"))
    free = (shown == 0) & ~judged & ~withdrawn
    last = rounds[-1] if rounds else None
    from_bits = [unpack_mask(draw_round.drawn_from, size) for draw_round in rounds]
    left = from_bits[-1] & free if rounds else free
    # What others alone have judged; nothing where everybody's judgments count.
    unknown = judged & (label == _NONE) & (shown == 0) & ~withdrawn
    numbered = [
        (draw_round.number, bits | unknown)
        for draw_round, bits in zip(rounds, from_bits, strict=True)
    ]
    is_open = last is not None and last.closed_at is None

    def goes_on(known_free: Mask) -> bool:
        return is_open and not (from_bits[-1] & (shown == 0) & ~known_free).any()

    if not goes_on(free | unknown):
        numbered.append((np.iinfo(np.int32).max, left | unknown))
    hopeful = label.copy()
    hopeful[[rank - 1 for _, _, rank, _ in pending]] = _NEGATIVE
    in_pool = ~withdrawn | (shown > 0)
    return AuditState(
        pool=pool,
        rounds=[_round(*pair, label, shown, in_pool) for pair in numbered],
        hopeful=[_round(*pair, hopeful, shown, in_pool) for pair in numbered],
        found=int(((label == _RELEVANT) & in_pool).sum()),
        to_judge=[image_id for _, _, _, image_id in pending],
        last=last,
        goes_on=goes_on(free),
        left=left,
        unjudged=int((left | unknown).sum()),
        aim=audit_aim(query),
    )


def _round(number: int, drawn_from: Mask, label: Any, shown: Any, in_pool: Mask) -> AuditRound:
    """The counts of one round; `shown` is the number of the round that displayed an image, or 0."""
    known = ~drawn_from & in_pool
    earlier = (shown > 0) & (shown < number)
    # Ranked images whose votes differ are not relevant, as the consensus has it; drawn ones are
    # hits until somebody decides.
    counted = (label == _RELEVANT) | (label == _NONE) | (earlier & (label == _DOUBTFUL))
    drawn = shown == number
    return AuditRound(
        found=int((known & counted).sum()),
        unjudged=int(drawn_from.sum()),
        drawn=int(drawn.sum()),
        hits=int((drawn & (label != _NEGATIVE)).sum()),
    )


def contested_label(agreed: Consensus) -> str:
    """Of an image on which votes differ: "relevant", "not_relevant" only where a reviewer has
    decided so, else "undecided".
    """
    if agreed.relevant:
        return "relevant"
    reviewed = agreed.decided_by == "reviewer" and not agreed.unsure
    return "not_relevant" if reviewed else "undecided"


def pack_mask(mask: Mask) -> bytes:
    """The bits of a mask as `DrawRound.drawn_from` has them."""
    return np.packbits(mask).tobytes()


def unpack_mask(bits: bytes | memoryview, size: int) -> Mask:
    """The mask of so many ranks that `pack_mask` has packed."""
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=size).astype(np.bool_)


def certificate(rounds: list[AuditRound], found: int, aim: Aim) -> Certificate:
    """What rounds bound."""
    sure: dict[str, Any] = {"found": found, "confidence": aim.confidence}
    aimed = sure | {"target": aim.target}
    more = more_without_hit(rounds, **aimed)
    share = settings.RELEASE_AUDIT_SHARE
    draws = round(share * rounds[0].unjudged) if share else None
    return Certificate(
        sentence=certificate_sentences(rounds, **aimed, release_draws=draws),
        missing_at_most=missing_at_most(rounds, **sure),
        recall_at_least=recall_at_least(rounds, **sure),
        met=more == 0,
        more_without_hit=more,
        out_of_reach=(rounds[-1].unjudged - rounds[-1].drawn if more is None else more)
        > WITHIN_REACH,
    )
