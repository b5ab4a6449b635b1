"""How fast runs are scored, compared with ir-measures and pytrec_eval: `python -m bench.metrics`.

All score the same runs against the same judgments with the same measures, per query, and their
means must agree. pytrec_eval and ir-measures take dictionaries of strings, this application takes
arrays, so each is timed from its own input and from the other's, conversion included. No two scores
of a query are equal, so there are no ties.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Final

import ir_measures
import numpy as np
import numpy.typing as npt
import pytrec_eval

from bench import harness
from evaluation.scoring.evaluation import score_runs, scored_query_ids
from evaluation.scoring.measures import Measure
from evaluation.scoring.run_files import Ranking
from releases.snapshot.qrels import Qrels

CUTS: Final = (1, 5, 10, 50, 100, 1000)
FAMILIES: Final = {"AP": "map_cut", "nDCG": "ndcg_cut", "P": "P", "R": "recall"}
AIM: Final = 10.0
TOLERANCE: Final = 1e-9
CORPUS: Final = 5_000_000
JUDGED: Final = 777
HEAD: Final = "What | Median | Fastest | Ratio | Remark"

StringRun = dict[str, dict[str, float]]
Run = dict[int, Ranking]
Means = dict[str, npt.NDArray[np.float64]]
Evaluate = Callable[[StringRun], Callable[[], dict[tuple[str, str], float]]]
"""Scores a run and returns a function that reads the scores by query and our measure's key."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The same judgments for all, and the runs as arrays."""

    qrels: Qrels
    runs: list[Run]
    measures: list[Measure]


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether all means agree, and how fast they were computed."""
    harness.log("Drawing runs and judgments …")
    inputs = draw(options.queries, options.runs, options.depth)
    own, to_arrays, to_strings = (
        "its own input",
        "conversion to arrays",
        "conversion to dictionaries",
    )
    them, also = (
        partial(_theirs, inputs, _pytrec_eval(inputs)),
        partial(_theirs, inputs, _ir(inputs)),
    )
    ways: dict[str, tuple[Callable[[bool], tuple[float, Means]], bool, str]] = {
        "This application, from arrays": (partial(_ours, inputs), False, own),
        "This application, from dictionaries": (partial(_ours, inputs), True, to_arrays),
        "pytrec_eval, from dictionaries": (them, False, own),
        "pytrec_eval, from arrays": (them, True, to_strings),
        "ir-measures, from dictionaries": (also, False, own),
        "ir-measures, from arrays": (also, True, to_strings),
    }
    harness.log("Scoring …")
    once = {name: partial(_undisturbed, run, convert) for name, (run, convert, _) in ways.items()}
    rounds = harness.in_turn(options.repeats, once)
    usual = {name: median(spent for spent, _ in results) for name, results in rounds.items()}
    ours, _, *others = usual
    faster = min(others[::2], key=usual.__getitem__)
    rows = []
    for name, (_, convert, remark) in ways.items():
        times = map(harness.ms, (usual[name], min(spent for spent, _ in rounds[name])))
        ratio = f"{usual[faster] / usual[name]:.1f}"
        rows.append([name, *times, ratio, f"{remark} included" if convert else remark])
    means = [results[0][1] for results in rounds.values()]
    difference = max(
        float(np.abs(other[key] - means[0][key]).max()) for other in means[1:] for key in means[0]
    )
    reached = "reached" if usual[faster] / usual[ours] >= AIM else "not reached"
    return difference <= TOLERANCE, [
        f"{options.queries} queries × {options.runs} runs × {options.depth} ranks, "
        f"{len(inputs.qrels.image_ids):,} judged pairs ({int(inputs.qrels.totals().sum()):,} "
        f"relevant), {len(inputs.measures)} measures, {options.repeats} repeats. Ratio: how "
        f"many times faster than {faster}, by medians.",
        harness.table(HEAD, rows),
        f"Means differ by at most {difference:.1e}. Aim: {AIM:.0f} times faster, each from its "
        f"own input: {reached} ({usual[faster] / usual[ours]:.1f}).",
    ]


def draw(queries: int, runs: int, depth: int) -> Inputs:
    """Judgments of about INQUIRE's size and runs that find what is judged early, if imperfectly.
    Reciprocal rank looks at the whole run, as pytrec_eval's does.
    """
    random = np.random.default_rng(12)
    pairs: list[npt.NDArray[np.int64]] = []
    made: list[Run] = [{} for _ in range(runs)]
    for query in range(queries):
        judged = random.choice(CORPUS, JUDGED, replace=False)
        total = int(np.clip(random.lognormal(4.2, 1.1), 1, JUDGED - 1))
        pairs.append(np.stack([np.full(JUDGED, query), judged, np.arange(JUDGED) < total]))
        for run in made:
            others = random.choice(CORPUS, depth, replace=False)
            pool = np.concatenate([judged, others[~np.isin(others, judged)]])
            merit = random.normal(size=len(pool))
            merit[:JUDGED] += 2.0
            merit[:total] += random.uniform(0.5, 2.5)
            best = np.argsort(-merit)[:depth]
            scores = np.arange(len(best), 0, -1, dtype=np.float64)
            run[query] = Ranking(pool[best].astype(np.int64), scores)
    of, images, relevant = np.concatenate(pairs, axis=1)
    qrels = Qrels.from_arrays(range(queries), of, images, relevant > 0)
    cut = [Measure(kind, k) for kind in FAMILIES for k in CUTS]
    return Inputs(qrels, made, [*cut, Measure("RR", depth), Measure("Rprec")])


def _undisturbed(
    run: Callable[[bool], tuple[float, Means]], convert: bool, _round: int
) -> tuple[float, Means]:
    """Without the garbage collector, which would count what else is in memory."""
    gc.collect()
    gc.disable()
    try:
        return run(convert)
    finally:
        gc.enable()


def _ours(inputs: Inputs, convert: bool) -> tuple[float, Means]:
    """All runs in one go; seconds and the runs' means by measure."""
    given = [_to_strings(run) for run in inputs.runs] if convert else []

    def score() -> dict[str, Any]:
        runs = [_to_arrays(strings) for strings in given] if convert else inputs.runs
        return dict(score_runs(runs, inputs.qrels, inputs.measures))

    spent, scores = harness.timed(score)
    return spent, {key: values.mean(axis=1) for key, values in scores.items()}


def _pytrec_eval(inputs: Inputs) -> Evaluate:
    keys = {f"{kind}@{k}": f"{name}_{k}" for kind, name in FAMILIES.items() for k in CUTS}
    keys |= {inputs.measures[-2].key: "recip_rank", "Rprec": "Rprec"}
    cuts = ",".join(map(str, CUTS))
    measures = {f"{name}.{cuts}" for name in FAMILIES.values()} | {"recip_rank", "Rprec"}
    evaluator = pytrec_eval.RelevanceEvaluator(_string_qrels(inputs.qrels), measures)

    def evaluate(run: StringRun) -> Callable[[], dict[tuple[str, str], float]]:
        scores_by_query = evaluator.evaluate(run)
        return lambda: {
            (query, key): values[theirs]
            for query, values in scores_by_query.items()
            for key, theirs in keys.items()
        }

    return evaluate


def _ir(inputs: Inputs) -> Evaluate:
    keys = {getattr(ir_measures, kind) @ k: f"{kind}@{k}" for kind in FAMILIES for k in CUTS}
    keys |= {ir_measures.RR: inputs.measures[-2].key, ir_measures.Rprec: "Rprec"}
    evaluator = ir_measures.evaluator(list(keys), _string_qrels(inputs.qrels))

    def evaluate(run: StringRun) -> Callable[[], dict[tuple[str, str], float]]:
        results = list(evaluator.iter_calc(run))
        return lambda: {(result.query_id, keys[result.measure]): result.value for result in results}

    return evaluate


def _theirs(inputs: Inputs, evaluate: Evaluate, convert: bool) -> tuple[float, Means]:
    """One run after the other, as they take them; seconds and the runs' means by measure."""
    queries = scored_query_ids(inputs.qrels).tolist()
    totals = dict(zip(inputs.qrels.query_ids.tolist(), inputs.qrels.totals().tolist(), strict=True))
    spent, means = 0.0, {measure.key: np.zeros(len(inputs.runs)) for measure in inputs.measures}
    for number, run in enumerate(inputs.runs):
        strings = {} if convert else _to_strings(run)
        took, read = harness.timed(lambda: evaluate(strings or _to_strings(run)))  # noqa: B023
        spent, values = spent + took, read()
        for measure in inputs.measures:
            # Their AP@k is over R, ours over min(k, R).
            k = measure.k if measure.name == "AP" and measure.k else CORPUS
            means[measure.key][number] = np.mean(
                [values[str(q), measure.key] * totals[q] / min(totals[q], k) for q in queries]
            )
    return spent, means


def _string_qrels(qrels: Qrels) -> dict[str, dict[str, int]]:
    """The judgments as the others take them."""
    return {
        str(query): {
            str(image): int(flag)
            for image, flag in zip(*(part.tolist() for part in qrels.of(query)), strict=True)
        }
        for query in qrels.query_ids.tolist()
    }


def _to_strings(run: Run) -> StringRun:
    """A run as pytrec_eval and ir-measures take it."""
    return {
        str(query): dict(
            zip(map(str, ranking.image_ids.tolist()), ranking.scores.tolist(), strict=True)
        )
        for query, ranking in run.items()
    }


def _to_arrays(run: StringRun) -> Run:
    """A run of theirs as this application takes it."""
    return {
        int(query): Ranking(
            np.fromiter(map(int, images), np.int64, len(images)),
            np.fromiter(images.values(), np.float64, len(images)),
        )
        for query, images in run.items()
    }


if __name__ == "__main__":
    packages = ("numpy", "ir_measures", "pytrec_eval-terrier")
    harness.run(main, "Scoring", packages, queries=250, runs=20, depth=1000, repeats=5)
