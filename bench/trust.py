"""How often certificates hold: `python -m bench.trust`.

Labelers judge a ranked pool until 100 in a row are not relevant, then audit the unjudged images,
looking at the bound after every label. At each hit they leave without judging it, return to the
ranking until 100 more in a row are not relevant, and audit in a new round, until every relevant
image is judged or displayed. The bound holds if no look was below the truth; a certificate is false
if the recall of the judged images is below its target.

Between two hits every method's bound only falls with each draw, so the look before each hit
represents all of them. The certificate is compared on the same runs with CMH (Callaghan and
Müller-Hansen 2020, as buscarpy computes it; it gets each hit where it was drawn), and with an
elusion sample of fixed size after the first streak, large enough to certify the target without a
hit: tested once, or at every look, as if the round so far were the sample.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import floor, log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import hypergeom

from bench import harness
from extras.simulation.measures import binomial_interval
from labeling.certificates.bounds import (
    AuditRound,
    log_evidence,
    meets_target,
    release_missing_at_most,
)

#: Images of the pool, relevant among them, and how many standard deviations their scores lie apart.
SETTINGS: Final = (
    *((500, 5, 2.0), (500, 30, 1.0)),
    *((5_000, 5, 1.0), (5_000, 30, 3.0), (5_000, 30, 2.0), (5_000, 100, 1.0)),
    *((20_000, 30, 2.0), (20_000, 100, 3.0), (20_000, 500, 2.0)),
)
STREAK: Final = 100
TARGET: Final = 0.9
CONFIDENCE: Final = 0.95
SENSITIVITY: Final = 0.9
SEEDS: Final = 60
HEAD: Final = "Pool | Relevant | d′"
METHODS: Final = {
    "certificate": "Certificate",
    "cmh": "CMH",
    "sample": "Elusion sample",
    "samples": "At every look",
}
RELEASES: Final = {
    "All hits recognized": (1.0, False),
    "0.9 recognized, no seeds": (SENSITIVITY, False),
    "0.9 recognized, 60 seeds": (SENSITIVITY, True),
}


@dataclass
class Path:
    """The result of one labeler."""

    recall: float = 0.0
    """At the first streak, like the next three fields."""
    labels: int = 0
    found: int = 0
    missing: int = 0
    held: bool = True
    """Whether the certificate's bound held at every look."""
    false: set[str] = field(default_factory=set)
    """The methods that certified the target falsely."""


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether no coverage's whole interval is below nominal, and how often all bounds held."""
    runs: list[list[Any]] = []
    releases: list[list[Any]] = []
    low = False
    for number, (images, relevant, separation) in enumerate(SETTINGS):
        if images not in options.pools:
            continue
        harness.log(f"{images:,} images, {relevant} relevant, d′ = {separation:g} …")
        random = np.random.default_rng([14, number])
        paths = [follow(images, relevant, separation, random) for _ in range(options.labelers)]
        name = [images, relevant, f"{separation:g}"]
        held = [path.held for path in paths]
        low |= below(held)
        labels = f"{np.mean([path.labels for path in paths]):,.0f}"
        missed = interval([path.recall < TARGET for path in paths])
        false = [interval([method in path.false for path in paths]) for method in METHODS]
        recall = float(np.mean([path.recall for path in paths]))
        runs.append([*name, labels, recall, missed, interval(held), *false])
        row = [*name]
        for sensitivity, seeded in RELEASES.values():
            covered = []
            for _ in range(options.releases):
                drawn = random.choice(len(paths), min(options.queries, len(paths)), replace=False)
                missing = sum(paths[labeler].missing for labeler in drawn)
                covered.append(release_held(missing, options.fraction, sensitivity, seeded, random))
            low |= below(covered) and (seeded or sensitivity == 1)
            row.append(interval(covered))
        releases.append(row)
    return not low, [
        f"{options.labelers:,} labelers a row, who stop the ranked pass after a streak of "
        f"{STREAK}, look after every label and leave at each hit. Shares with their 95 % "
        "Clopper–Pearson interval. First the ranked pass alone; then whether the bound "
        f"({CONFIDENCE:g}) held at every look; then who was told falsely that recall is at "
        f"least {TARGET:g}: by the certificate, by CMH, and by an elusion sample of fixed "
        "size, tested once or at every look.",
        harness.table(
            f"{HEAD} | Labels | Recall | Below {TARGET:g} | Bound held | "
            + " | ".join(METHODS.values()),
            runs,
        ),
        f"{options.releases:,} releases a row, of {options.queries} such labelers each, of "
        f"whose unjudged images {100 * options.fraction:g} % are audited: whether at most M_u "
        "were missing.",
        harness.table(f"{HEAD} | {' | '.join(RELEASES)}", releases),
        "Coverage is at or above nominal within its interval in "
        + ("all settings." if not low else "not all settings."),
    ]


def follow(images: int, relevant: int, separation: float, random: np.random.Generator) -> Path:
    """Simulate one labeler on a pool, whose images are numbered by rank."""
    scores = random.normal(size=images)
    scores[:relevant] += separation
    truth = (np.arange(images) < relevant)[np.argsort(-scores)]
    judged = np.zeros(images, dtype=bool)
    left: list[int] = []
    rounds: list[AuditRound] = []
    labels: list[NDArray[np.bool_]] = []
    path = Path()
    while True:
        ranks = ranked_pass(np.flatnonzero(~judged), truth)
        judged[ranks] = True
        labels.append(truth[np.setdiff1d(ranks, left, assume_unique=True)])
        found = int(truth[judged].sum())
        if not rounds:
            path.recall, path.labels = found / relevant, len(ranks)
            path.found, path.missing = found, relevant - found
            sample_once(path, images - len(ranks), relevant, random)
        elif meets(rounds, found) and found < TARGET * relevant:
            path.false.add("certificate")
        open_hits = [rank for rank in left if not judged[rank]]
        pool = np.setdiff1d(np.flatnonzero(~judged), open_hits, assume_unique=True)
        known_relevant = found + len(open_hits)
        if known_relevant == relevant:
            return path
        drawn = random.permutation(pool)
        misses = int(np.argmax(truth[drawn]))
        judged[drawn[:misses]] = True
        labels.append(np.zeros(misses, dtype=bool))
        look(path, [*rounds, AuditRound(known_relevant, len(pool), misses, 0)], found, relevant)
        if (
            known_relevant < TARGET * relevant
            and "cmh" not in path.false
            and cmh(np.concatenate(labels), images) < 1 - CONFIDENCE
        ):
            path.false.add("cmh")
        labels.append(np.ones(1, dtype=bool))
        rounds.append(AuditRound(known_relevant, len(pool), misses + 1, 1))
        left.append(int(drawn[misses]))


def ranked_pass(unjudged: NDArray[np.intp], truth: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The unjudged ranks that are judged until STREAK in a row are not relevant."""
    hits = np.flatnonzero(truth[unjudged])
    gaps = np.diff(np.concatenate([[-1], hits, [len(unjudged) + STREAK]])) - 1
    before = int(np.argmax(gaps >= STREAK))
    return unjudged[: (hits[before - 1] + 1 if before else 0) + STREAK]


def look(path: Path, rounds: list[AuditRound], found: int, relevant: int) -> None:
    """The look before a hit, at the certificate and at a sample of this round alone."""
    path.held &= log_evidence(rounds, relevant) < -log(1 - CONFIDENCE)
    if found < TARGET * relevant:
        if meets(rounds, found):
            path.false.add("certificate")
        last = rounds[-1]
        if sample_certifies(last.found, last.unjudged, last.drawn, 0):
            path.false.add("samples")


def meets(rounds: Sequence[AuditRound], found: int) -> bool:
    """Whether the target is certified; usually decided by the smallest number to reject."""
    if log_evidence(rounds, floor(found / TARGET) + 1) < -log(1 - CONFIDENCE):
        return False
    return meets_target(rounds, found=found, target=TARGET, confidence=CONFIDENCE)


def cmh(labels: NDArray[np.bool_], images: int) -> float:
    """The p-value of a recall below the target after labels in their order: the least over all
    tests of labels from some position on. It is least at the first position or right after a
    relevant image, since each label that isn't relevant only adds to the sample.
    """
    starts = np.concatenate([[0], np.flatnonzero(labels) + 1])
    before = np.arange(len(starts))
    relevant = before[-1]
    supposed = floor(relevant / TARGET) + 1 - before
    hits = np.arange(relevant + 1)[:, None]
    chances = hypergeom.logpmf(hits, images - starts, supposed, len(labels) - starts)
    chances[hits > relevant - before] = -np.inf
    return float(np.exp(logsumexp(chances, axis=0).min()))


def sample_once(path: Path, unjudged: int, relevant: int, random: np.random.Generator) -> None:
    """Draw the smallest sample that certifies the target without a hit, and test it."""
    drawn = bisect_left(
        range(unjudged), True, key=lambda size: sample_certifies(path.found, unjudged, size, 0)
    )
    hits = int(random.hypergeometric(path.missing, unjudged - path.missing, drawn)) if drawn else 0
    false = path.found + hits < TARGET * relevant
    if false and sample_certifies(path.found, unjudged, drawn, hits):
        path.false.add("sample")


def sample_certifies(found: int, unjudged: int, drawn: int, hits: int) -> bool:
    """Whether `hits` in a sample of fixed size reject every recall below the target."""
    least = floor((found + hits) / TARGET) + 1 - found
    return bool(
        least > unjudged - drawn + hits
        or hypergeom.cdf(hits, unjudged, least, drawn) <= 1 - CONFIDENCE
    )


def release_held(
    missing: int, fraction: float, sensitivity: float, seeded: bool, random: np.random.Generator
) -> bool:
    """Whether a release's bound covers what is missing when its labelers hand in."""
    hits = int(random.binomial(missing, fraction * sensitivity))
    seeds = (int(random.binomial(SEEDS, sensitivity)), SEEDS) if seeded else None
    at_most = release_missing_at_most(hits, fraction, seeds=seeds, confidence=CONFIDENCE)
    return at_most is None or missing <= at_most


def interval(outcomes: Sequence[bool]) -> str:
    """A share in percent, with its interval."""
    low, high = _limits(outcomes)
    return f"{100 * np.mean(outcomes):.1f} ({100 * low:.1f}–{100 * high:.1f})"


def below(outcomes: Sequence[bool]) -> bool:
    """Whether the whole interval of a coverage is below nominal."""
    return _limits(outcomes)[1] < CONFIDENCE


def _limits(outcomes: Sequence[bool]) -> tuple[float, float]:
    return binomial_interval(sum(outcomes), len(outcomes))


if __name__ == "__main__":
    sizes = {"labelers": 1000, "releases": 1000, "queries": 100, "fraction": 0.01}
    pools = (500, 5_000, 20_000)
    harness.run(main, "Certificates", ("numpy", "scipy"), **sizes, pools=pools)
