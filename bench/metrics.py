"""How fast runs are scored, compared with ir-measures and pytrec_eval: `python -m bench.metrics`.

All score the same runs against the same judgments with the same measures, per query, and their
means must agree. pytrec_eval and ir-measures take dictionaries of strings, this application takes
arrays, so each is timed from its own input and from the other's, conversion included. No two scores
of a query are equal, so that nobody has ties to break.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Final

import ir_measures
import numpy as np
import numpy.typing as npt
import pytrec_eval

from bench import harness
from benchmark.scoring.evaluation import score_runs, scored_query_ids
from benchmark.scoring.measures import Measure
from benchmark.scoring.qrels import Qrels
from benchmark.scoring.run_files import Ranking

CUTS: Final = (1, 5, 10, 50, 100, 1000)
KINDS: Final = ("AP", "nDCG", "P", "R")
AIM: Final = 10.0
TOLERANCE: Final = 1e-9
CORPUS: Final = 5_000_000
JUDGED: Final = 777
HEAD: Final = ("What", "Median", "Fastest", "Ratio", "Remark")
OWN: Final = "its own input"

StringRun = dict[str, dict[str, float]]
Run = dict[int, Ranking]
Means = dict[str, npt.NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The same judgments for all, and the runs as arrays."""

    qrels: Qrels
    runs: list[Run]
    measures: list[Measure]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when the means differ, else 0."""
    options = harness.parse(
        "metrics", __doc__, arguments, queries=250, runs=20, depth=1000, repeats=5
    )
    harness.log("Drawing runs and judgments …")
    inputs = draw(options.queries, options.runs, options.depth)
    ways: dict[tuple[str, str], Callable[[], tuple[float, Means]]] = {
        ("This application, from arrays", OWN): partial(_ours, inputs, convert=False),
        ("This application, from dictionaries", "conversion to arrays included"): partial(
            _ours, inputs, convert=True
        ),
    }
    for name, evaluate in (("pytrec_eval", _pytrec_eval(inputs)), ("ir-measures", _ir(inputs))):
        once = partial(_theirs, inputs, evaluate)
        ways[f"{name}, from dictionaries", OWN] = partial(once, convert=False)
        ways[f"{name}, from arrays", "conversion to dictionaries included"] = partial(
            once, convert=True
        )
    harness.log("Scoring …")
    rounds = harness.in_turn(
        options.repeats,
        {name: lambda _, once=once: _undisturbed(once) for (name, _), once in ways.items()},  # type: ignore[misc]
    )
    usual = {name: median(spent for spent, _ in results) for name, results in rounds.items()}
    faster = min((n for n, remark in ways if remark == OWN and n[0] != "T"), key=usual.__getitem__)
    rows = [
        [
            name,
            harness.ms(usual[name]),
            harness.ms(min(spent for spent, _ in rounds[name])),
            f"{usual[faster] / usual[name]:.1f}",
            remark,
        ]
        for name, remark in ways
    ]
    means = [results[0][1] for results in rounds.values()]
    difference = max(
        float(np.abs(other[key] - means[0][key]).max()) for other in means[1:] for key in means[0]
    )
    ratio = usual[faster] / usual["This application, from arrays"]
    print(
        harness.section(
            "Scoring",
            options.command,
            ("numpy", "ir_measures", "pytrec_eval-terrier"),
            f"{options.queries} queries × {options.runs} runs × {options.depth} ranks, "
            f"{len(inputs.qrels.image_ids):,} judged pairs ({int(inputs.qrels.totals().sum()):,} "
            f"relevant), {len(inputs.measures)} measures, {options.repeats} repeats. Ratio: how "
            f"many times faster than {faster}, by medians.",
            harness.table(HEAD, rows),
            f"Means differ by at most {difference:.1e}. Aim: {AIM:.0f} times faster, each from its "
            f"own input: {'reached' if ratio >= AIM else 'not reached'} ({ratio:.1f}).",
        )
    )
    return 0 if difference <= TOLERANCE else 1


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
    all_pairs = np.concatenate(pairs, axis=1)
    qrels = Qrels.from_arrays(range(queries), all_pairs[0], all_pairs[1], all_pairs[2] > 0)
    cut = [Measure(kind, k) for kind in KINDS for k in CUTS]
    return Inputs(qrels, made, [*cut, Measure("RR", depth), Measure("Rprec")])


def _undisturbed(once: Callable[[], tuple[float, Means]]) -> tuple[float, Means]:
    """Without the garbage collector, which would count what else is in memory."""
    gc.collect()
    gc.disable()
    try:
        return once()
    finally:
        gc.enable()


def _ours(inputs: Inputs, *, convert: bool) -> tuple[float, Means]:
    """All runs in one go; seconds and the runs' means by measure."""
    given = [_to_strings(run) for run in inputs.runs] if convert else []
    began = time.perf_counter()
    runs = [_to_arrays(strings) for strings in given] if convert else inputs.runs
    scores = score_runs(runs, inputs.qrels, inputs.measures)
    spent = time.perf_counter() - began
    return spent, {key: values.mean(axis=1) for key, values in scores.items()}


Evaluate = tuple[Callable[[StringRun], Any], Callable[[Any], dict[tuple[str, str], float]]]
"""What scores a run, and what takes the scores by query and this application's measure from it."""


def _pytrec_eval(inputs: Inputs) -> Evaluate:
    families = {"AP": "map_cut", "nDCG": "ndcg_cut", "P": "P", "R": "recall"}
    keys = {f"{kind}@{k}": f"{name}_{k}" for kind, name in families.items() for k in CUTS}
    keys |= {inputs.measures[-2].key: "recip_rank", "Rprec": "Rprec"}
    cuts = ",".join(map(str, CUTS))
    measures = {f"{name}.{cuts}" for name in families.values()} | {"recip_rank", "Rprec"}
    evaluator = pytrec_eval.RelevanceEvaluator(_string_qrels(inputs.qrels), measures)
    return evaluator.evaluate, lambda found: {
        (query, key): values[theirs]
        for query, values in found.items()
        for key, theirs in keys.items()
    }


def _ir(inputs: Inputs) -> Evaluate:
    keys = {getattr(ir_measures, kind) @ k: f"{kind}@{k}" for kind in KINDS for k in CUTS}
    keys |= {ir_measures.RR: inputs.measures[-2].key, ir_measures.Rprec: "Rprec"}
    evaluator = ir_measures.evaluator(list(keys), _string_qrels(inputs.qrels))
    return lambda run: list(evaluator.iter_calc(run)), lambda found: {
        (one.query_id, keys[one.measure]): one.value for one in found
    }


def _theirs(inputs: Inputs, evaluate: Evaluate, *, convert: bool) -> tuple[float, Means]:
    """One run after the other, as they take them; seconds and the runs' means by measure."""
    score, read = evaluate
    queries = scored_query_ids(inputs.qrels).tolist()
    totals = dict(zip(inputs.qrels.query_ids.tolist(), inputs.qrels.totals().tolist(), strict=True))
    spent, means = 0.0, {measure.key: np.zeros(len(inputs.runs)) for measure in inputs.measures}
    for number, run in enumerate(inputs.runs):
        strings = {} if convert else _to_strings(run)
        began = time.perf_counter()
        found = score(strings or _to_strings(run))
        spent += time.perf_counter() - began
        values = read(found)
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
        str(query): dict(zip(map(str, one.image_ids.tolist()), one.scores.tolist(), strict=True))
        for query, one in run.items()
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
    sys.exit(main())
