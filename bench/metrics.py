"""How fast runs are scored, beside ir-measures and pytrec_eval: `python -m bench.metrics`.

All score the same runs against the same judgments with the same measures, per query, and their
means must agree. pytrec_eval and ir-measures take dictionaries of strings, this application takes
arrays, so each is timed from its own input and from the other's, conversion included. Making the
input, and the evaluators of the judgments, is outside: a benchmark is opened once and scores many
runs. No two scores of a query are equal, so that nobody has ties to break.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import ir_measures
import numpy as np
import numpy.typing as npt
import pytrec_eval

from bench.figures import Row, machine, ms, percentile, table
from benchmark.runs.files import Ranking
from benchmark.scoring.evaluation import score_runs, scored_query_ids
from benchmark.scoring.measures import Measure
from benchmark.scoring.qrels import Qrels

CUTS: Final = (1, 5, 10, 50, 100, 1000)
KINDS: Final = ("AP", "nDCG", "P", "R")
AIM: Final = 10.0
TOLERANCE: Final = 1e-9
CORPUS: Final = 5_000_000
JUDGED: Final = 777
HEAD: Final = Row("What", "Median", "Fastest", "Ratio", "Remark")
OWN_INPUT: Final = "its own input"

StringRun = dict[str, dict[str, float]]
Run = dict[int, Ranking]
Means = dict[str, npt.NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The same judgments for all, and the runs as arrays."""

    qrels: Qrels
    runs: list[Run]
    depth: int

    @property
    def measures(self) -> list[Measure]:
        """What is computed; reciprocal rank looks at the whole run, as pytrec_eval's does."""
        cut = [Measure(kind, k) for kind in KINDS for k in CUTS]
        return [*cut, Measure("RR", self.depth), Measure("Rprec")]

    @property
    def string_qrels(self) -> dict[str, dict[str, int]]:
        """The judgments as the others take them."""
        return {
            str(query): {
                str(image): int(flag)
                for image, flag in zip(
                    *(part.tolist() for part in self.qrels.of(query)), strict=True
                )
            }
            for query in self.qrels.query_ids.tolist()
        }


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of each repeat, and the means that came out, one for each run."""

    name: str
    seconds: list[float]
    means: Means
    remark: str

    @property
    def usual(self) -> float:
        return percentile(self.seconds, 0.5)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when the means differ, else 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.metrics", description=__doc__)
    parser.add_argument("--queries", type=int, default=250)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--depth", type=int, default=1000, help="ranks of each query")
    parser.add_argument("--repeats", type=int, default=5, help="how often each is timed")
    options = parser.parse_args(arguments)
    if min(options.queries, options.runs, options.depth, options.repeats) < 1:
        parser.error("All numbers must be positive.")
    _tell("Drawing runs and judgments …")
    inputs = draw(options.queries, options.runs, options.depth)
    timings = _timings(inputs, options.repeats)
    difference = _largest_difference([one.means for one in timings])
    print(_report(inputs, timings, difference))
    return 0 if difference <= TOLERANCE else 1


def draw(queries: int, runs: int, depth: int, seed: int = 12) -> Inputs:
    """Judgments of about INQUIRE's size and runs that find what is judged early, if imperfectly."""
    random = np.random.default_rng(seed)
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
    table = np.concatenate(pairs, axis=1)
    qrels = Qrels.from_arrays(range(queries), table[0], table[1], table[2] > 0)
    return Inputs(qrels, made, depth)


def _timings(inputs: Inputs, repeats: int) -> list[Timing]:
    """Each way timed once in every round, so that a busy moment of the machine meets all alike."""
    ours = _Ours(inputs)
    pytrec = _theirs(inputs, _PytrecEval(inputs))
    ir = _theirs(inputs, _IrMeasures(inputs))
    made_strings, made_arrays = (
        f"conversion to {what} included" for what in ("dictionaries", "arrays")
    )
    ways: list[tuple[str, str, Callable[[], tuple[float, Means]]]] = [
        ("This application, from arrays", OWN_INPUT, ours.from_arrays),
        ("This application, from dictionaries", made_arrays, ours.from_strings),
        ("pytrec_eval, from dictionaries", OWN_INPUT, partial(pytrec, False)),
        ("pytrec_eval, from arrays", made_strings, partial(pytrec, True)),
        ("ir-measures, from dictionaries", OWN_INPUT, partial(ir, False)),
        ("ir-measures, from arrays", made_strings, partial(ir, True)),
    ]
    timings = [Timing(name, [], {}, remark) for name, remark, _once in ways]
    for number in range(repeats):
        _tell(f"Round {number + 1} of {repeats} …")
        for timing, (_name, _remark, once) in zip(timings, ways, strict=True):
            spent, means = _undisturbed(once)
            timing.seconds.append(spent)
            timing.means.update(means)
    return timings


def _undisturbed(once: Callable[[], tuple[float, Means]]) -> tuple[float, Means]:
    """Without the garbage collector, which would count what else is in memory."""
    gc.collect()
    gc.disable()
    try:
        return once()
    finally:
        gc.enable()


class _Ours:
    """This application: all runs in one go."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs

    def from_arrays(self) -> tuple[float, Means]:
        began = time.perf_counter()
        scores = score_runs(self._inputs.runs, self._inputs.qrels, self._inputs.measures)
        spent = time.perf_counter() - began
        return spent, {key: values.mean(axis=1) for key, values in scores.items()}

    def from_strings(self) -> tuple[float, Means]:
        runs, spent = [], 0.0
        for run in self._inputs.runs:
            strings = to_strings(run)
            began = time.perf_counter()
            runs.append(to_arrays(strings))
            spent += time.perf_counter() - began
        began = time.perf_counter()
        scores = score_runs(runs, self._inputs.qrels, self._inputs.measures)
        spent += time.perf_counter() - began
        return spent, {key: values.mean(axis=1) for key, values in scores.items()}


class _PytrecEval:
    """pytrec_eval: {query: {its measure: score}} of one run."""

    def __init__(self, inputs: Inputs) -> None:
        cuts = ",".join(map(str, CUTS))
        names = {"AP": "map_cut", "nDCG": "ndcg_cut", "P": "P", "R": "recall"}
        self._keys = {f"{kind}@{k}": f"{name}_{k}" for kind, name in names.items() for k in CUTS}
        self._keys |= {f"RR@{inputs.depth}": "recip_rank", "Rprec": "Rprec"}
        wanted = {f"{name}.{cuts}" for name in names.values()} | {"recip_rank", "Rprec"}
        self._evaluator = pytrec_eval.RelevanceEvaluator(inputs.string_qrels, wanted)

    def evaluate(self, run: StringRun) -> Any:
        return self._evaluator.evaluate(run)

    def scores(self, found: Any) -> dict[tuple[str, str], float]:
        return {
            (query, key): values[theirs]
            for query, values in found.items()
            for key, theirs in self._keys.items()
        }


class _IrMeasures:
    """ir-measures: a list of metrics of one run."""

    def __init__(self, inputs: Inputs) -> None:
        families = {"AP": ir_measures.AP, "nDCG": ir_measures.nDCG}
        families |= {"P": ir_measures.P, "R": ir_measures.R}
        measures = {family @ k: f"{kind}@{k}" for kind, family in families.items() for k in CUTS}
        self._keys = measures | {ir_measures.RR: f"RR@{inputs.depth}", ir_measures.Rprec: "Rprec"}
        self._evaluator = ir_measures.evaluator(list(self._keys), inputs.string_qrels)

    def evaluate(self, run: StringRun) -> Any:
        return list(self._evaluator.iter_calc(run))

    def scores(self, found: Any) -> dict[tuple[str, str], float]:
        return {(one.query_id, self._keys[one.measure]): one.value for one in found}


def _theirs(
    inputs: Inputs, evaluator: _PytrecEval | _IrMeasures
) -> Callable[[bool], tuple[float, Means]]:
    """Times an evaluator on all runs, one after the other as it takes them."""
    queries = scored_query_ids(inputs.qrels).tolist()
    totals = dict(zip(inputs.qrels.query_ids.tolist(), inputs.qrels.totals().tolist(), strict=True))

    def once(with_conversion: bool) -> tuple[float, Means]:
        spent = 0.0
        rows: list[dict[tuple[str, str], float]] = []
        for run in inputs.runs:
            began = time.perf_counter()
            strings = to_strings(run)
            if not with_conversion:
                began = time.perf_counter()
            found = evaluator.evaluate(strings)
            spent += time.perf_counter() - began
            rows.append(evaluator.scores(found))
        means = {
            measure.key: np.array(
                [
                    np.mean(
                        [row[str(q), measure.key] * _scale(measure, totals[q]) for q in queries]
                    )
                    for row in rows
                ]
            )
            for measure in inputs.measures
        }
        return spent, means

    return once


def _scale(measure: Measure, total: int) -> float:
    """What makes their AP@k, which is over R, ours, which is over min(k, R)."""
    return total / min(total, measure.k) if measure.kind == "AP" and measure.k else 1.0


def to_strings(run: Run) -> StringRun:
    """A run as pytrec_eval and ir-measures take it."""
    return {
        str(query): dict(zip(map(str, one.image_ids.tolist()), one.scores.tolist(), strict=True))
        for query, one in run.items()
    }


def to_arrays(run: StringRun) -> Run:
    """A run of theirs as this application takes it."""
    return {
        int(query): Ranking(
            np.fromiter(map(int, images), np.int64, len(images)),
            np.fromiter(images.values(), np.float64, len(images)),
        )
        for query, images in run.items()
    }


def _largest_difference(means: Sequence[Means]) -> float:
    first = means[0]
    return max(float(np.abs(other[key] - first[key]).max()) for other in means[1:] for key in first)


def _report(inputs: Inputs, timings: Sequence[Timing], difference: float) -> str:
    own = {one.name: one.usual for one in timings if one.remark == OWN_INPUT}
    theirs = {name: usual for name, usual in own.items() if not name.startswith("This")}
    faster = min(theirs, key=lambda name: theirs[name])
    rows = [
        Row(
            one.name,
            ms(one.usual),
            ms(min(one.seconds)),
            f"{theirs[faster] / one.usual:.1f}",
            one.remark,
        )
        for one in timings
    ]
    judged, total = len(inputs.qrels.image_ids), int(inputs.qrels.totals().sum())
    ratio = theirs[faster] / timings[0].usual
    reached = "reached" if ratio >= AIM else "not reached"
    packages = ("numpy", "ir_measures", "pytrec_eval-terrier")
    return "\n".join(
        [
            f"# Scoring\n\n{machine(packages)}\n",
            f"{len(inputs.qrels.query_ids)} queries x {len(inputs.runs)} runs x {inputs.depth} "
            f"ranks, {judged:,} judged pairs ({total:,} relevant), "
            f"{len(inputs.measures)} measures, {len(timings[0].seconds)} repeats. "
            f"Ratio: how many times faster than {faster}, by medians.\n",
            table(rows, head=HEAD),
            f"\nMeans differ by at most {difference:.1e}. Aim: {AIM:.0f} times faster, each from "
            f"its own input: {reached} ({ratio:.1f}).",
        ]
    )


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
