"""How many relevant images a pool may still hide, by the counts of random audits alone.

A query's bound is the prior-posterior-ratio martingale of Waudby-Smith and Ramdas, "Confidence
sequences for sampling without replacement" (NeurIPS 2020). It holds at every moment at once, so
people may look after every label, stop when satisfied and go back to the ranking between rounds.
A release's bound is one binomial sample over all its queries, looked at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import exp, floor, fsum, inf, lgamma, log
from typing import Final

THETA: Final = 0.2
"""The prior expects j relevant images among the unjudged with probability (1 − θ) θ^j."""
SEEDS_SHARE: Final = 0.4
"""The part of the permitted error that goes to the sensitivity where seeds measure it."""


@dataclass(frozen=True, slots=True)
class AuditRound:
    """Images of a pool drawn at random, one after the other, and judged.

    The counts are by the labels that stand now: who changes a label counts all rounds again. A draw
    counts from the moment at which it is displayed. A hit is a draw that isn't judged not relevant:
    it is relevant, unsure or not judged yet. ValueError: a count that the others don't allow.
    """

    found: int
    """Relevant images of the pool known when the round begins, all hits of earlier rounds among
    them (else those that are unsure or not judged yet would be expected among the unjudged)."""
    unjudged: int
    """The images that the round draws from: without a judgment, and displayed in no earlier round.
    """
    drawn: int
    """Of these, the first in draw order."""
    hits: int
    """Of the drawn."""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative: {getattr(self, name)}")
        if self.drawn > self.unjudged:
            raise ValueError(f"drawn must be at most unjudged ({self.unjudged}): {self.drawn}")
        if self.hits > self.drawn:
            raise ValueError(f"hits must be at most drawn ({self.drawn}): {self.hits}")

    @property
    def least(self) -> int:
        """The fewest relevant images that the pool can have after the round, hits as relevant."""
        return self.found + self.hits

    @property
    def most(self) -> int:
        """The most relevant images that the pool can have after the round."""
        return self.least + self.unjudged - self.drawn


def relevant_at_most(rounds: Sequence[AuditRound], *, confidence: float = 0.95) -> int:
    """R_u, the largest number R of relevant images in the pool with E(R) < 1/α: with this
    confidence there are at no moment more. A fully judged pool has what was found and hit.

    Where every R that is still possible is rejected, as more has been found than earlier rounds
    allowed for, the audits have failed, and the number is what can't be excluded.

    ValueError: no rounds, rounds that can't follow each other, a confidence outside 0 to 1.
    """
    return _at_most(rounds, 0, confidence)


def missing_at_most(rounds: Sequence[AuditRound], *, found: int, confidence: float = 0.95) -> int:
    """R_u less the `found`: the relevant images of the pool known by now, without the unsure and
    those not judged yet. Later finds lower it without a new audit.

    ValueError: as relevant_at_most, or more found than the last round leaves possible.
    """
    return _at_most(rounds, found, confidence) - found


def recall_at_least(
    rounds: Sequence[AuditRound], *, found: int, confidence: float = 0.95
) -> float | None:
    """found / R_u; None where nothing is found, as recall isn't defined then. `found` and errors
    as in missing_at_most.
    """
    at_most = _at_most(rounds, found, confidence)
    return found / at_most if found else None


def meets_target(
    rounds: Sequence[AuditRound], *, found: int, target: float = 0.9, confidence: float = 0.95
) -> bool:
    """Whether every R from ⌊found / target⌋ + 1 on is rejected; where nothing is found, whether
    nothing can be missing. `found` and errors as in missing_at_most, or a target outside 0 to 1.
    """
    return _at_most(rounds, found, confidence) <= _allowed(found, target)


def more_without_hit(
    rounds: Sequence[AuditRound], *, found: int, target: float = 0.9, confidence: float = 0.95
) -> int | None:
    """The fewest further draws of the last round that certify the target if none is a hit; 0 where
    it is certified already. None where that takes all images left: a pool that is judged whole has
    no need of a certificate. For a round to come, append one without draws. `found` and errors as
    in meets_target.
    """
    *earlier, last = rounds

    def met(more: int) -> bool:
        longer = AuditRound(last.found, last.unjudged, last.drawn + more, last.hits)
        return meets_target([*earlier, longer], found=found, target=target, confidence=confidence)

    steps = range(max(last.most - max(found, last.least), 1))
    more = bisect_left(steps, True, key=met)
    return more if more < len(steps) else None


def log_evidence(rounds: Sequence[AuditRound], relevant: int) -> float:
    """log E(R) against R `relevant` images in the pool; infinite where there can't be so many.

        E(R) = Π_k Σ_j (1 − θ) θ^j h(x_k; n_k, j, U_k) / h(x_k; n_k, R − r_k, U_k)
        h(x; n, m, U) = C(m, x) C(U − m, n − x) / C(U, n)

    Under the true R it is a nonnegative martingale that begins at 1 at most, so it ever reaches
    1/α with probability α at most (Ville's inequality).
    """
    if not all(audit_round.least <= relevant <= audit_round.most for audit_round in rounds):
        return inf
    return sum(
        _log_mean_ways(audit_round.unjudged, audit_round.drawn, audit_round.hits)
        - _log_ways(
            audit_round.unjudged, audit_round.drawn, audit_round.hits, relevant - audit_round.found
        )
        for audit_round in rounds
    )


def _at_most(rounds: Sequence[AuditRound], found: int, confidence: float) -> int:
    """R_u among the R from `found` on. log h is concave in m, as its steps
    log((m + 1) / (m + 1 − x)) + log(1 − (n − x) / (U − m)) fall; so log E is convex in R, and the
    rejected R above its minimum are found by bisection.
    """
    limit = -log(1 - _within("confidence", confidence))
    if not rounds:
        raise ValueError("rounds must not be empty")
    for number, (before, after) in enumerate(pairwise(rounds), start=2):
        if after.found < before.least:
            raise ValueError(
                f"found of round {number} must be at least the found and hits of the round before "
                f"({before.least}): {after.found}"
            )
        if after.found + after.unjudged > before.most:
            raise ValueError(
                f"found and unjudged of round {number} must be at most what the round before "
                f"leaves ({before.most}): {after.found + after.unjudged}"
            )
    least, most = max(rounds[-1].least, found), rounds[-1].most
    if least > most:
        raise ValueError(f"found must be at most what the last round leaves ({most}): {found}")

    def evidence(relevant: int) -> float:
        return log_evidence(rounds, relevant)

    lowest = bisect_left(
        range(most),
        True,
        lo=least,
        key=lambda relevant: evidence(relevant + 1) >= evidence(relevant),
    )
    rejected = bisect_left(
        range(most + 1), True, lo=lowest, key=lambda relevant: evidence(relevant) >= limit
    )
    return rejected - 1 if rejected > lowest else most


@lru_cache(maxsize=4096)
def _log_mean_ways(unjudged: int, drawn: int, hits: int) -> float:
    """log Σ_j (1 − θ) θ^j C(j, x) C(U − j, n − x). The terms fall faster than those of a negative
    binomial distribution, of which less than 1e-20 lies beyond 2 x + 64.
    """
    last = min(unjudged - drawn + hits, 2 * hits + 64)
    terms = [j * log(THETA) + _log_ways(unjudged, drawn, hits, j) for j in range(hits, last + 1)]
    top = max(terms)
    return log(1 - THETA) + top + log(fsum(exp(term - top) for term in terms))


def _log_ways(unjudged: int, drawn: int, hits: int, relevant: int) -> float:
    """log of h(x; n, m, U) C(U, n): in how many ways so many are hit."""
    return _log_choose(relevant, hits) + _log_choose(unjudged - relevant, drawn - hits)


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _allowed(found: int, target: float) -> int:
    """The most relevant images that a pool may have for `found` to be the target's share: exact,
    with the target as it is written.
    """
    return floor(found / Fraction(repr(float(_within("target", target, whole=True)))))


def _within(name: str, share: float, *, whole: bool = False) -> float:
    if 0 < share < 1 or (whole and share == 1):
        return share
    raise ValueError(f"{name} must lie between 0 and 1: {share}")


def release_missing_at_most(
    hits: int,
    fraction: float,
    *,
    seeds: tuple[int, int] | None = None,
    possible: int | None = None,
    confidence: float = 0.95,
) -> int | None:
    """M_u = max {M : P(Bin(M, f) ≤ x) > α}, the relevant among all that was unjudged when queries
    were handed in, of which each was audited with probability `fraction`, and `hits` were hits;
    audits that aren't finished count as hits.

    `seeds` are (recognized, mixed in): known positives that the auditors didn't know. The fraction
    becomes f·s_L then, and of α two fifths go to s_L and three fifths to M_u. `possible` is how
    many there can be at all, whatever was drawn: all that was unjudged, or less where it was judged
    since. None without it where no seed was recognized: the audits say nothing.

    ValueError: negative hits, a fraction outside 0 to 1, seeds as in sensitivity_at_least.
    """
    # Here and below: pages don't wait for an import that takes long.
    from scipy.special import betaincc

    if hits < 0:
        raise ValueError(f"hits must not be negative: {hits}")
    effective, error = _effective(fraction, seeds, confidence)
    if not effective:
        return possible

    def too_many(missing: int) -> bool:
        return bool(betaincc(hits + 1, missing - hits, effective) <= error)

    most = hits + 1
    while not too_many(most):
        most *= 2
    at_most = bisect_left(range(most), True, lo=hits + 1, key=too_many) - 1
    return at_most if possible is None else min(at_most, possible)


def release_recall_at_least(
    *,
    found: int,
    found_at_audit: int,
    hits: int,
    fraction: float,
    seeds: tuple[int, int] | None = None,
    possible: int | None = None,
    confidence: float = 0.95,
) -> float | None:
    """found / (found at audit + M_u), over all queries of the release: images found now, and when
    the audits began. None where it says nothing: none is found, no seed was recognized, or more
    was found since than M_u, so that the bound is known to have failed. The rest and errors as in
    release_missing_at_most.
    """
    missing = release_missing_at_most(
        hits, fraction, seeds=seeds, possible=possible, confidence=confidence
    )
    if not found or missing is None or found > found_at_audit + missing:
        return None
    return found / (found_at_audit + missing)


def sensitivity_at_least(recognized: int, seeds: int, *, confidence: float = 0.98) -> float:
    """s_L, the share of relevant images that auditors recognize, by the seeds that they recognized:
    the lower bound of Clopper and Pearson (1934); 0 without any.

    ValueError: recognized outside 0 to seeds, no seeds, a confidence outside 0 to 1.
    """
    from scipy.special import betaincinv

    if not 0 <= recognized <= seeds or not seeds:
        raise ValueError(f"recognized must be at most seeds ({seeds}, from 1): {recognized}")
    error = 1 - _within("confidence", confidence)
    return float(betaincinv(recognized, seeds - recognized + 1, error)) if recognized else 0.0


def _effective(
    fraction: float, seeds: tuple[int, int] | None, confidence: float
) -> tuple[float, float]:
    """With which probability a relevant image becomes a hit, and the error left for the bound."""
    error = 1 - _within("confidence", confidence)
    _within("fraction", fraction, whole=True)
    if seeds is None:
        return fraction, error
    sensitivity = sensitivity_at_least(*seeds, confidence=1 - SEEDS_SHARE * error)
    return fraction * sensitivity, (1 - SEEDS_SHARE) * error
