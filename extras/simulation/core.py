"""Labeling a judged query again: by which order, until which stop, and what that finds.

Every image of a simulated pool was judged, so that what a simulated person says of it is known. One
who misses says "not relevant" of a share of the relevant images, the same ones however often they
come up. See extras/simulation/README.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from statistics import fmean
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from extras.simulation import measures
from extras.simulation.readers import doubted, kept, parse_reader
from labeling.certificates import bounds
from labeling.certificates.bounds import AuditRound
from labeling.learning.ridge import (
    direction_and_weight,
    interleave,
    odds_numbers,
    pool_moments,
    pool_scores,
)
from retrieval.ranking.scan import Halves, Rows, Scores

Flags = NDArray[np.bool_]
Labels = NDArray[np.int8]
"""(n,) what was said of each image: 1 relevant, 0 not, UNJUDGED nothing yet."""
Next = Callable[[Labels], Rows]
"""Gives the images to label next, in order, from the labels so far; none when all are judged."""

ORDERS: Final = ("frozen", "active", "random")
#: Orders that learn with a reader, named with it, such as "read auc:0.9": of all images, or of
#: those that the reader keeps.
READ_ORDERS: Final = ("read", "screened")
UNJUDGED: Final = -1
#: Labels after which the order that learns has a new revision.
REVISION_EVERY: Final = 10
#: Revisions that are remembered, since the seeds of a query begin alike.
REVISIONS_KEPT: Final = 1024
#: Bounds that are remembered, likewise.
BOUNDS_KEPT: Final = 1 << 14
RECALLS: Final = {"80": 0.8, "95": 0.95, "100": 1.0}


@dataclass(frozen=True, eq=False, slots=True)
class Pool:
    """The judged images of a query, in the frozen order."""

    image_ids: Rows
    """(n,)"""
    relevant: Flags
    """(n,) the consensus."""
    vectors: Halves
    """(n, d)"""
    text: Halves
    """(d,)"""
    minimum: int = 0
    """Labels that the query asks for before a streak ends it."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop rule. A certificate's ranked pass ends with a streak; then its audit begins."""

    kind: Literal["streak", "certificate", "exhausted"]
    streak: int = 100
    minimum: int | None = None
    """Labels before a streak counts; None for the query's own number."""
    target: float = 0.9
    """The recall that a certificate states."""
    confidence: float = 0.95

    def __str__(self) -> str:
        if self.kind == "streak":
            minimum = "" if self.minimum is None else f":{self.minimum}"
            return f"streak:{self.streak}{minimum}"
        return f"certificate:{self.target:g}" if self.kind == "certificate" else self.kind


def parse_stop(text: str, *, streak: int = 100) -> Stop:
    """The rule that "streak:100", "streak:100:500" (with a minimum of labels), "certificate:0.9" or
    "exhausted" names; `streak` is that of a certificate's ranked pass. ValueError for other texts.
    """
    kind, *numbers = text.split(":")
    try:
        if kind == "streak" and len(numbers) in (1, 2):
            length, *minimum = map(int, numbers)
            if length >= 1 and all(count >= 0 for count in minimum):
                return Stop("streak", streak=length, minimum=minimum[0] if minimum else None)
        elif kind == "certificate" and len(numbers) == 1:
            if 0 < (target := float(numbers[0])) < 1:
                return Stop("certificate", streak=streak, target=target)
        elif kind == "exhausted" and not numbers:
            return Stop("exhausted")
    except ValueError:
        pass
    raise ValueError(
        f'"{text}" is no stop rule: write streak:100, streak:100:500 (with a minimum of labels), '
        "certificate:0.9 or exhausted"
    )


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the runs, with its exact interval of 95 %."""

    share: float
    low: float
    high: float

    @classmethod
    def of(cls, hits: int, runs: int) -> Share:
        """The share that so many of the runs are."""
        return cls(hits / runs, *measures.binomial_interval(hits, runs))


@dataclass(frozen=True, slots=True)
class OrderFigures:
    """How early an order brings up the relevant images, whatever is said of them; means of runs."""

    order: str
    runs: int
    labels_to: dict[str, float]
    """Labels to a recall of "80", "95" and "100" percent."""
    wss_95: float
    erf_10: float
    atd: float
    curve: list[float]
    """The recall after `measures.curve_labels`, rounded to be drawn."""


@dataclass(frozen=True, slots=True)
class StopFigures:
    """Where a rule stops the runs of an order."""

    order: str
    stop: str
    runs: int
    labels: float
    """Mean, as is `recall`."""
    labels_p5: float
    """The 5th percentile, as is `recall_p5`."""
    recall: float
    recall_p5: float
    target: float
    below_target: Share
    """The runs that stopped below the target."""
    saved: float
    """The share of the recorded labels that the mean run saves."""
    exhausted: float
    """The share of the runs that labeled the whole pool."""
    coverage: Share | None = None
    """The runs in which the audits' bound held at the stop; None without a certificate."""
    false_certificates: Share | None = None
    """The runs that were certified below the target."""


@dataclass(frozen=True, slots=True)
class DoubtFigures:
    """What second opinions find where a confident reader differs from the labels of a pool that was
    labeled whole; means of runs.
    """

    order: str
    second_opinions: float
    errors_found: float
    errors_at_random: float
    """Expected of as many second opinions of random images that were labeled not relevant."""


@dataclass(frozen=True, slots=True)
class Run:
    """One simulated labeling."""

    labels: int
    found: int
    """Relevant images that were labeled so."""
    rounds: tuple[AuditRound, ...] = ()
    certified: bool = False


class Simulation:
    """A pool to be labeled again and again.

    What doesn't depend on chance runs once: the frozen order without missed images, and the order
    that learns, except for what comes after an audit. Where it does, there are `seeds` runs, and
    `active_seeds` at most of the orders that learn, each of whose runs takes seconds.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        noise: float = 0.0,
        seeds: int = 1000,
        active_seeds: int = 20,
        target: float = 0.9,
        prevalence: float | None = None,
    ) -> None:
        """`noise` is the share of the relevant images that a person misses, `target` the recall
        that stops without one of their own are measured by, and `prevalence` the share of relevant
        images where readers were calibrated; None for the pool's own.

        ValueError: the pool has no relevant image, so that recall is undefined.
        """
        if not pool.relevant.any():
            raise ValueError("No image is relevant, so there is no recall to measure.")
        self.pool, self.noise, self.seeds, self.target = pool, noise, seeds, target
        self.active_seeds = min(seeds, active_seeds)
        self._prevalence = min(prevalence or float(pool.relevant.mean()), 0.99)
        self._clip = pool_scores(pool.vectors, pool.text)
        self._revisions: dict[tuple[str, int], Next] = {}

    @property
    def curve_labels(self) -> list[int]:
        """The numbers of labels after which the curves give the recall."""
        points: list[int] = measures.curve_labels(len(self.pool.relevant)).tolist()
        return points

    def order(self, order: str) -> OrderFigures:
        """How early an order of ORDERS, or a reader's, brings up the relevant images. What a reader
        leaves out comes last, in the frozen order.
        """
        count = len(self.pool.relevant)
        simulated = [self._found_at(order, seed) for seed in self._seeds(order)]
        points = measures.curve_labels(count)
        return OrderFigures(
            order=order,
            runs=len(simulated),
            labels_to={
                name: fmean(measures.labels_to(found_at, recall) for found_at in simulated)
                for name, recall in RECALLS.items()
            },
            wss_95=fmean(measures.work_saved(found_at, count) for found_at in simulated),
            erf_10=fmean(measures.extra_found(found_at, count) for found_at in simulated),
            atd=fmean(measures.time_to_discovery(found_at) for found_at in simulated),
            curve=np.mean([measures.recall_curve(found_at, points) for found_at in simulated], 0)
            .round(5)
            .tolist(),
        )

    def stop(self, order: str, stop: Stop) -> StopFigures:
        """Where a rule stops an order of ORDERS."""
        runs = self.runs(order, stop)
        count, relevant = len(self.pool.relevant), int(self.pool.relevant.sum())
        certificate = stop.kind == "certificate"
        target = stop.target if certificate else self.target
        labels, recalls = [run.labels for run in runs], [run.found / relevant for run in runs]
        below = [recall < target for recall in recalls]
        covered = sum(
            relevant <= _relevant_at_most(run.rounds, stop.confidence) if run.rounds else True
            for run in runs
        )
        return StopFigures(
            order=order,
            stop=str(stop),
            runs=len(runs),
            labels=fmean(labels),
            labels_p5=measures.fifth_percentile(labels),
            recall=fmean(recalls),
            recall_p5=measures.fifth_percentile(recalls),
            target=target,
            below_target=Share.of(sum(below), len(runs)),
            saved=1 - fmean(labels) / count,
            exhausted=fmean(run.labels == count for run in runs),
            coverage=Share.of(covered, len(runs)) if certificate else None,
            false_certificates=Share.of(
                sum(run.certified and low for run, low in zip(runs, below, strict=True)), len(runs)
            )
            if certificate
            else None,
        )

    def runs(self, order: str, stop: Stop) -> list[Run]:
        """The runs of an order of ORDERS until a rule stops them, by seed."""
        return [self._run(order, stop, seed) for seed in self._seeds(order, stop)]

    def doubt(self, order: str) -> DoubtFigures:
        """What second opinions find where the reader of one of its orders doubts labels."""
        opinions, found, at_random = [], [], []
        for seed in range(self.seeds):
            said = self._said(seed)
            asked, errors = doubted(self._log_odds(order, seed), said), self.pool.relevant & ~said
            opinions.append(int(asked.sum()))
            found.append(int((asked & errors).sum()))
            at_random.append(opinions[-1] * float(errors.sum() / max(1, (~said).sum())))
        return DoubtFigures(order, fmean(opinions), fmean(found), fmean(at_random))

    def _seeds(self, order: str, stop: Stop | None = None) -> range:
        """The seeds whose runs differ."""
        learns = order not in ("frozen", "random")
        random = order not in ("frozen", "active")
        random |= stop is not None and stop.kind == "certificate"
        # The frozen order itself is the same whatever is said of its images.
        random |= self.noise > 0 and (stop is not None or learns)
        if not random:
            return range(1)
        return range(self.active_seeds if learns else self.seeds)

    def _said(self, seed: int) -> Flags:
        missed = np.random.default_rng((seed, 0)).random(len(self.pool.relevant)) < self.noise
        return self.pool.relevant & ~missed

    def _next(self, order: str, seed: int) -> Next:
        if order not in ("frozen", "random"):
            key = order, 0 if order == "active" else seed
            if key not in self._revisions:
                # One order comes after the other.
                same = {old: one for old, one in self._revisions.items() if old[0] == order}
                self._revisions = same | {key: self._learn(*key)}
            return self._revisions[key]
        places = np.arange(len(self.pool.relevant))
        if order == "random":
            places = np.random.default_rng((seed, 1)).permutation(places)
        return lambda labels: places[labels[places] == UNJUDGED]

    def _learn(self, order: str, seed: int) -> Next:
        if order == "active":
            return active_order(self.pool)
        log_odds = self._log_odds(order, seed)
        offered = kept(log_odds) if order.startswith("screened ") else None
        return active_order(self.pool, log_odds, offered)

    def _log_odds(self, order: str, seed: int) -> Scores:
        """What the reader of an order says."""
        return parse_reader(order.partition(" ")[2]).log_odds(
            self.pool.relevant, self._clip, prevalence=self._prevalence, seed=seed
        )

    def _found_at(self, order: str, seed: int) -> measures.Places:
        """When each relevant image comes up."""
        relevant, said, following = self.pool.relevant, self._said(seed), self._next(order, seed)
        labels = np.full(len(relevant), UNJUDGED, np.int8)
        sequence: list[Rows] = []
        while (relevant & (labels == UNJUDGED)).any():
            places = following(labels)
            if not len(places):
                places = np.flatnonzero(labels == UNJUDGED)
            labels[places] = said[places]
            sequence.append(places)
        return np.flatnonzero(relevant[np.concatenate(sequence)]) + 1

    def _run(self, order: str, stop: Stop, seed: int) -> Run:
        said = self._said(seed)
        if stop.kind == "exhausted":
            return Run(len(said), int(said.sum()))
        draws = np.random.default_rng((seed, 2)).permutation(len(said))
        minimum = self.pool.minimum if stop.minimum is None else stop.minimum
        person = _Person(said, self._next(order, seed), draws, stop, minimum)
        if stop.kind == "certificate":
            return person.certify()
        person.label_ranked()
        return person.run()


def active_order(pool: Pool, log_odds: Scores | None = None, offered: Flags | None = None) -> Next:
    """The order that learns, REVISION_EVERY images at a time: with what a reader says (n,), of the
    images that are offered (n,) alone.
    """
    moments = pool_moments([pool.vectors], pool.text)
    places = np.arange(len(pool.image_ids))
    numbers = np.empty((len(places), 0))
    if log_odds is not None:
        numbers = odds_numbers(log_odds).astype(np.float64)[:, None]
    offered = np.ones(len(places), np.bool_) if offered is None else offered
    frozen = places[offered].tolist()

    @lru_cache(REVISIONS_KEPT)
    def following(said: bytes) -> Rows:
        labels = np.frombuffer(said, np.int8)
        judged = np.flatnonzero(labels != UNJUDGED)
        w, weight = direction_and_weight(
            moments, pool.text, pool.vectors[judged], labels[judged] == 1, numbers[judged]
        )
        scores = pool_scores(pool.vectors, w) + weight * numbers.sum(axis=1)
        learned = np.lexsort((pool.image_ids, -scores))
        learned = learned[offered[learned]]
        queue = interleave(learned.tolist(), frozen, judged=judged.tolist())
        return np.array(list(islice(queue, REVISION_EVERY)), np.int64)

    return lambda labels: following(labels.tobytes())


class _Person:
    """Somebody who labels a pool once."""

    def __init__(self, said: Flags, following: Next, draws: Rows, stop: Stop, minimum: int) -> None:
        self._said, self._following, self._draws = said, following, draws
        self._stop, self._minimum = stop, minimum
        self._labels: Labels = np.full(len(said), UNJUDGED, np.int8)
        self._judged = self._found = 0
        self._rounds: tuple[AuditRound, ...] = ()

    def run(self, *, certified: bool = False) -> Run:
        """What was done so far. A pool that is labeled whole is complete, not certified."""
        certified &= self._judged < len(self._said)
        return Run(self._judged, self._found, self._rounds, certified)

    def label_ranked(self) -> bool:
        """Label by the order until so many in a row are not relevant, the pool ends, or a find
        meets the target with the audits before; whether it does.
        """
        row = 0
        while len(places := self._following(self._labels)):
            # Each piece ends with a relevant image, except for the last.
            for piece in np.split(places, np.flatnonzero(self._said[places]) + 1):
                hit = len(piece) > 0 and bool(self._said[piece[-1]])
                # This many negatives more would end the pass.
                end = max(self._stop.streak - row, self._minimum - self._judged, 1)
                if end <= len(piece) - hit:
                    self._label(piece[:end])
                    return False
                self._label(piece)
                row = 0 if hit else row + len(piece)
                if hit and self._target_met():
                    return True
        return False

    def certify(self) -> Run:
        """Label by the order, audit, and go back to the order after each hit, until the target is
        met or the pool is labeled whole.
        """
        while not self.label_ranked():
            unjudged = self._draws[self._labels[self._draws] == UNJUDGED]
            if not len(unjudged):
                return self.run()
            begun = AuditRound(self._found, len(unjudged), 0, 0)
            hits = np.flatnonzero(self._said[unjudged])
            drawn = int(hits[0]) if len(hits) else len(unjudged)
            if met := self._target_met(replace(begun, drawn=drawn)):
                drawn = _draws_to((*self._rounds, begun), self._found, self._stop)
            hit = int(not met and drawn < len(unjudged))
            self._label(unjudged[: drawn + hit])
            self._rounds += (replace(begun, drawn=drawn + hit, hits=hit),)
            if self._target_met():
                break
        return self.run(certified=self._target_met())

    def _label(self, places: Rows) -> None:
        said = self._said[places]
        self._labels[places] = said
        self._judged += len(places)
        self._found += int(said.sum())

    def _target_met(self, *begun: AuditRound) -> bool:
        """Whether the rounds so far and one that was begun certify the target."""
        rounds = (*self._rounds, *begun)
        return bool(rounds) and _meets_target(rounds, self._found, self._stop)


@lru_cache(BOUNDS_KEPT)
def _meets_target(rounds: tuple[AuditRound, ...], found: int, stop: Stop) -> bool:
    return bounds.meets_target(rounds, found=found, target=stop.target, confidence=stop.confidence)


@lru_cache(BOUNDS_KEPT)
def _draws_to(rounds: tuple[AuditRound, ...], found: int, stop: Stop) -> int:
    """How many more draws without a hit meet the target, or the whole round where none do."""
    more = bounds.more_without_hit(
        rounds, found=found, target=stop.target, confidence=stop.confidence
    )
    return rounds[-1].unjudged if more is None else more


@lru_cache(BOUNDS_KEPT)
def _relevant_at_most(rounds: tuple[AuditRound, ...], confidence: float) -> int:
    return bounds.relevant_at_most(rounds, confidence=confidence)
