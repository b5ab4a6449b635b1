"""Whether the ranges of scores hold the truth, and what they cost: `python -m bench.certified`.

Releases whose truth is known: the first images of each query's pool are labeled until 100 in a row
are not relevant; a share of the rest is drawn for the release's audit and labeled. By these labels
alone each run gets the range of its mean, and pairs of runs are told to keep their order or not.

With `--demo 1`, beside a running demo and with its VAR_DIR, after `python -m
demo.training.variants`, the queries and their truth are the demo's, and the runs the five models.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench import harness
from bench.trust import CONFIDENCE, below, interval, ranked_pass
from evaluation.scoring.measures import Measure, parse_measures
from evaluation.scoring.missing import (
    FirstImages,
    least_difference,
    least_mean_difference,
    mean_range,
    score_range,
)
from evaluation.scoring.significance import bootstrap_intervals
from labeling.certificates.bounds import release_missing_at_most

MEASURES: Final = parse_measures(["AP@50", "nDCG@50", "R@50"])
DEPTH: Final = 50
#: Images of a pool, relevant among them, and how far their scores lie apart in the pool's order.
SETTINGS: Final = ((500, 30, 2.0), (2_000, 30, 2.0), (2_000, 100, 2.0))
#: How far they lie apart in the runs' own orders.
RUNS: Final = (2.5, 2.0, 1.9, 1.5)
#: The toy queries whose differences are compared with those of every completion.
TOYS: Final = 300

Random = np.random.Generator


@dataclass(frozen=True, slots=True)
class Query:
    """A query whose truth is known; images are numbered by their rank in the pool."""

    truth: NDArray[np.bool_]
    """(n,)"""
    orders: list[NDArray[np.int64]]
    """The first DEPTH images of each run."""

    def first(self, run: int, relevant: Any, possible: Any) -> FirstImages:
        """A run's images by labels (n,), and what else may be relevant (n,)."""
        ids = self.orders[run]
        beyond = int(possible.sum() - possible[ids].sum())
        return FirstImages(ids, relevant[ids], possible[ids], int(relevant.sum()), beyond)


@dataclass(frozen=True, slots=True)
class Labeled:
    """The labels of a release's queries that have a relevant image by them."""

    queries: list[Query]
    relevant: list[NDArray[np.bool_]]
    possible: list[NDArray[np.bool_]]
    most: int
    """How many relevant images the labels may miss."""

    @classmethod
    def of(cls, queries: list[Query], fraction: float, random: Random) -> Labeled:
        """Label the queries, and audit them."""
        relevant, possible, hits = [], [], 0
        for query in queries:
            judged = np.zeros(len(query.truth), dtype=np.bool_)
            judged[ranked_pass(np.arange(len(judged)), query.truth)] = True
            drawn = ~judged & (random.random(len(judged)) < fraction)
            hits += int(query.truth[drawn].sum())
            relevant.append(query.truth & (judged | drawn))
            possible.append(~judged & ~drawn)
        left = int(sum(map(np.sum, possible)))
        at_most = release_missing_at_most(hits, fraction, possible=left + hits)
        scored = [number for number, labels in enumerate(relevant) if labels.any()]
        return cls(
            [queries[number] for number in scored],
            [relevant[number] for number in scored],
            [possible[number] for number in scored],
            (at_most or 0) - hits,
        )

    def first(self, run: int) -> list[FirstImages]:
        """A run's images for each query."""
        rows = zip(self.queries, self.relevant, self.possible, strict=True)
        return [query.first(run, relevant, possible) for query, relevant, possible in rows]

    def range(self, run: int, measure: Measure) -> tuple[float, float]:
        """The range of a run's mean."""
        tables = [score_range(first, measure, self.most) for first in self.first(run)]
        return mean_range(np.stack(tables), self.most)

    def ahead(self, first: int, second: int, measure: Measure) -> bool:
        """Whether the first run is ahead of the second, whatever the labels miss."""
        images = self.first(first), self.first(second)
        return least_mean_difference(*images, measure, self.most) > 0

    def true_mean(self, run: int, measure: Measure) -> float:
        """The mean by the truth."""
        known = [
            score_range(query.first(run, query.truth, np.zeros_like(query.truth)), measure, 0)
            for query in self.queries
        ]
        return float(np.mean(known))


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether all ranges and orders of a release hold as often as its certificate."""
    rows: list[list[Any]] = []
    low = False
    for name, draw in _sources(options):
        harness.log(f"{name} …")
        random = np.random.default_rng(39)
        held, most, widths, apart, runs = [], [], [], [], 0
        for _ in range(options.releases):
            queries = draw(random)
            runs = len(queries[0].orders)
            labeled = Labeled.of(queries, options.fraction, random)
            truth = {one: [labeled.true_mean(run, one) for run in range(runs)] for one in MEASURES}
            ranges = {one: [labeled.range(run, one) for run in range(runs)] for one in MEASURES}
            ahead = [
                pair for pair in combinations(range(runs), 2) if labeled.ahead(*pair, MEASURES[0])
            ]
            inside = (
                edge[0] - 1e-12 <= mean <= edge[1] + 1e-12
                for one in MEASURES
                for edge, mean in zip(ranges[one], truth[one], strict=True)
            )
            held.append(
                all(inside) and all(truth[MEASURES[0]][a] > truth[MEASURES[0]][b] for a, b in ahead)
            )
            most.append(labeled.most)
            widths.append([np.ptp(ranges[one], axis=1).mean() for one in MEASURES])
            apart.append(len(ahead) / (runs * (runs - 1) / 2))
        low |= below(held)
        points = (f"{100 * width:.1f}" for width in np.mean(widths, axis=0))
        shares = f"{100 * np.mean(apart):.0f} %"
        rows.append([name, runs, f"{median(most):g}", *points, shares, interval(held)])
    return not low, [
        f"{options.releases} releases a row of {options.queries} queries (or the demo’s), of whose "
        f"unlabeled images {100 * options.fraction:g} % are audited. The last column: in how many "
        "releases all ranges of all runs hold the true means and no pair is told apart falsely, in "
        f"percent with the 95 % Clopper–Pearson interval; the certificate’s confidence is "
        f"{CONFIDENCE:g}.",
        harness.table(
            "Pool, relevant, d′ | Runs | Missing at most (median) | Width of AP@50, points | "
            "nDCG@50 | R@50 | Pairs that can’t swap by AP@50 | Held",
            rows,
        ),
        _looseness(),
        _seconds(options),
    ]


def _sources(options: Any) -> Iterator[tuple[str, Callable[[Random], list[Query]]]]:
    """What a row is called, and what draws a release's queries for it."""
    if options.demo:
        queries = _demo_queries()
        yield f"The demo’s {len(queries)} queries", lambda _: queries
        return
    for images, relevant, apart in SETTINGS:

        def draw(random: Random, of: tuple[int, int, float] = (images, relevant, apart)) -> Any:
            return [_invented(*of, random) for _ in range(options.queries)]

        yield f"{images:,}, {relevant}, {apart:g}", draw


def _invented(images: int, relevant: int, apart: float, random: Random) -> Query:
    def ranked(truth: Any, distance: float) -> Any:
        return np.argsort(-(random.normal(size=images) + distance * truth))

    number = max(1, int(random.poisson(relevant)))
    truth = np.arange(images) < number
    truth = truth[ranked(truth, apart)]
    return Query(truth, [ranked(truth, distance)[:DEPTH] for distance in RUNS])


def _demo_queries() -> list[Query]:
    from demo.training.variants import rankings_and_truth

    queries = []
    for rankings, relevant in zip(*rankings_and_truth(), strict=True):
        pool = {image_id: rank for rank, image_id in enumerate(rankings[0])}
        truth = np.isin(rankings[0], list(relevant))
        orders = [np.array([pool[image] for image in order[:DEPTH]]) for order in rankings]
        queries.append(Query(truth, orders))
    return queries


def _looseness() -> str:
    """How far the bound of AP's difference is below the least difference of all completions."""
    random = np.random.default_rng(40)
    [measure] = parse_measures(["AP@5"])
    gaps = []
    for _ in range(TOYS):
        relevant, possible = np.zeros((2, 10), dtype=np.bool_)
        chosen = random.permutation(10)
        relevant[chosen[:2]] = possible[chosen[2:7]] = True
        query = Query(relevant, [random.permutation(10)[:5] for _ in range(2)])
        first, second = (query.first(run, relevant, possible) for run in range(2))
        exact = []
        for missing in chain.from_iterable(combinations(chosen[2:7], m) for m in range(4)):
            full = relevant.copy()
            full[list(missing)] = True
            nothing = np.zeros_like(full)
            scores = [score_range(query.first(run, full, nothing), measure, 0) for run in range(2)]
            exact.append(float(scores[0][0, 0] - scores[1][0, 0]))
        gaps.append(min(exact) - least_difference(first, second, measure, 3)[-1])
    return (
        f"{TOYS} toy queries of 10 images, 2 known to be relevant and at most 3 of 5 missing: the "
        f"bound of AP@5’s difference is {100 * np.mean(gaps):.2f} points below the least of all "
        f"completions in the mean, {100 * max(gaps):.1f} at most, and the same in "
        f"{100 * np.mean(np.array(gaps) < 1e-12):.0f} % of the queries."
    )


def _seconds(options: Any) -> str:
    """The time of a run's range and of a pair's bound, beside that of a bootstrap interval."""
    random = np.random.default_rng(41)
    queries = [_invented(2_000, 100, 2.0, random) for _ in range(options.timed)]
    labeled = Labeled.of(queries, options.fraction, random)
    labeled = Labeled(labeled.queries, labeled.relevant, labeled.possible, options.missing)
    scores = np.array([[first.relevant.mean() for first in labeled.first(0)]])
    works: dict[str, Callable[[], Any]] = {
        "A bootstrap interval": lambda: bootstrap_intervals(scores),
        **{f"A run’s range of {one}": partial(labeled.range, 0, one) for one in MEASURES},
        "Whether a pair can swap by AP@50": lambda: labeled.ahead(0, 1, MEASURES[0]),
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(options.rounds):
        for name, work in works.items():
            began = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - began)
    bare = median(times["A bootstrap interval"])
    rows = [[name, f"{median(all_) * 1000:.0f} ms", f"{median(all_) / bare:.1f}"]
            for name, all_ in times.items()]  # fmt: skip
    head = "What | Median | × the interval"
    about = f"{options.timed} queries that miss at most {options.missing} images in all:"
    return f"{about}\n\n{harness.table(head, rows)}"


if __name__ == "__main__":
    sizes = {"releases": 300, "queries": 50, "fraction": 0.05, "demo": 0}
    harness.run(
        main, "Certified scores", ("numpy", "scipy"), **sizes, timed=250, missing=300, rounds=5
    )
