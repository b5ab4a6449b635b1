"""Whether labels favor the models that chose which images people judged.

A model finds the judged images that are among its first n for a query. The labels without a model
leave out the images that it alone finds; the labels of a model alone leave out the images that only
other models find. Images that no model finds (of a search, an audit, an import) stay in both. A
query that has no relevant image left isn't scored.

Sources: Zobel 1998, "How reliable are the results of large-scale information retrieval
experiments?", for leaving one contributor out; Chun et al. 2022, "ECCV Caption", appendix E, for
the bias, there in R-precision and in what it calls Recall@1: hit@1 here, since its indicator is
whether the first item is a positive.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evaluation.scoring.evaluation import Run, score_runs
from evaluation.scoring.measures import Measure
from evaluation.scoring.rounding import UNIT, mean_margin, settled
from evaluation.scoring.significance import tau_b
from releases.snapshot.qrels import Qrels

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Tops = Mapping[str, Mapping[int, Integers]]
"""Model -> query id -> its first n images, or the judged ones among them."""

#: Orders of runs with at least this correlation count as the same.
STABLE: Final = 0.95
#: The order of fewer runs says nothing.
FEWEST_RUNS: Final = 3
FEWEST_MODELS: Final = 2


@dataclass(frozen=True, slots=True)
class Bias:
    """ECCV's bias of some labels: the mean of |s_Θ - s_All| over runs; None over none."""

    whole: float | None
    own: float | None
    """Over the runs of the models Θ that found the labeled images."""
    others: float | None
    """Over all other runs."""


@dataclass(frozen=True, slots=True)
class PartScores:
    """Runs scored by a part of the labels."""

    scores: Mapping[int, float]
    """Run id -> mean; NaN where no query is left."""
    queries: int
    """How many have a relevant image left."""
    tau: float | None
    """Kendall's tau-b with the order by all labels; None where it isn't defined."""
    bias: Bias


@dataclass(frozen=True, slots=True)
class ModelBias:
    """One model's contribution to the labels."""

    model: str
    found: int
    """Relevant images that it finds."""
    unique: int
    """Relevant images that no other model finds."""
    without: PartScores
    """The scores by the labels without the model."""
    alone: PartScores
    """The scores by the labels of the model alone."""


@dataclass(frozen=True, slots=True)
class PoolBias:
    """Runs scored by all labels and by parts of them."""

    scores: Mapping[int, float]
    """Run id -> mean by all labels; NaN without a query."""
    queries: int
    relevant: int
    """Relevant images of all queries, each counted for each of its queries."""
    outside: int
    """Relevant images that no model finds."""
    models: tuple[ModelBias, ...]

    @property
    def sentence(self) -> str:
        """What follows for the rankings, for people."""
        if len(self.models) < FEWEST_MODELS:
            only = f"{self.models[0].model} alone" if self.models else "no model that is known"
            return f"The judged images come from {only}, so no model can be left out."
        if len(self.scores) < FEWEST_RUNS:
            few = f"{len(self.scores)} run{'' if len(self.scores) == 1 else 's'}"
            return f"{few} can’t show whether rankings are stable; {FEWEST_RUNS} are needed."
        taus = [
            (model.without.tau, model.model)
            for model in self.models
            if model.without.tau is not None
        ]
        if len(taus) < len(self.models):
            return "Some labels give all runs the same score, so their order can’t be compared."
        lowest, model = min(taus)
        # The computed one has five roundings.
        if lowest >= STABLE - 8 * UNIT:
            return f"Rankings are stable: leaving out any one model keeps τ-b ≥ {STABLE}."
        return (
            f"Rankings depend on the pool: without {model} τ-b is {lowest:.2f}, below {STABLE}, so "
            "some runs change places."
        )


def pool_bias(
    runs: Mapping[int, Run],
    qrels: Qrels,
    tops: Tops,
    own: Mapping[str, Collection[int]],
    measure: Measure,
) -> PoolBias:
    """Score runs, by id, by all labels, and for each model by labels without it and by its alone.

    `own` has the ids of the runs of each model that has some.
    """
    finds = found_by_model(qrels, tops)
    counts = finds.sum(axis=0)
    whole, queries = _means(runs, qrels, measure)

    def part(pairs: Bools, pool_models: Collection[str]) -> PartScores:
        scores, scored = (
            (whole, queries) if pairs.all() else _means(runs, qrels.where(pairs), measure)
        )
        by_run = dict(zip(runs, scores.tolist(), strict=True))
        if not scored:
            return PartScores(by_run, scored, None, Bias(None, None, None))
        pool = {run for model in pool_models for run in own.get(model, ())}
        bias = bias_of(whole, scores, np.array([run in pool for run in runs], dtype=np.bool_))
        return PartScores(by_run, scored, tau_b(whole.tolist(), scores.tolist()), bias)

    models = []
    for model, model_finds in zip(tops, finds, strict=True):
        unique = model_finds & (counts == 1)
        models.append(
            ModelBias(
                model=model,
                found=int((model_finds & qrels.relevant).sum()),
                unique=int((unique & qrels.relevant).sum()),
                without=part(~unique, tops.keys() - {model}),
                alone=part(model_finds | (counts == 0), [model]),
            )
        )
    return PoolBias(
        scores=dict(zip(runs, whole.tolist(), strict=True)),
        queries=queries,
        relevant=int(qrels.relevant.sum()),
        outside=int((qrels.relevant & (counts == 0)).sum()),
        models=tuple(models),
    )


def bias_of(whole: Floats, part: Floats, pool: Bools) -> Bias:
    """The bias of some labels, by which r runs score `part` (r,), against all labels, by which they
    score `whole` (r,). `pool` (r,) marks the runs of the models that found the labeled images.
    Source: Chun et al. 2022, equation E.5."""
    differences = np.abs(part - whole)

    def mean(rows: Bools) -> float | None:
        return float(differences[rows].mean()) if rows.any() else None

    return Bias(mean(np.ones_like(pool)), mean(pool), mean(~pool))


def found_by_model(qrels: Qrels, tops: Tops) -> Bools:
    """(m, n) which of the n judged pairs each of m models finds."""
    none = np.zeros(0, dtype=np.int64)
    parts = [
        (query_id, qrels.image_ids[begin:end])
        for query_id, begin, end in zip(
            qrels.query_ids.tolist(), qrels.offsets[:-1], qrels.offsets[1:], strict=True
        )
    ]
    finds = np.zeros((len(tops), len(qrels.image_ids)), dtype=np.bool_)
    for row, top in zip(finds, tops.values(), strict=True):
        if parts:
            row[:] = np.concatenate(
                [np.isin(ids, top.get(query_id, none)) for query_id, ids in parts]
            )
    return finds


def read_tops(path: Path, first: int) -> dict[str, dict[int, Integers]]:
    """The judged images that each model ranked among its first `first`, by model name and query id.

    Reads a release's table of the ranks by model. OSError: it isn't there.
    """
    table = pq.read_table(path, columns=["query_id", "image_id", "model", "rank"])
    tops: dict[str, dict[int, Integers]] = {}
    for model in sorted(table["model"].unique().to_pylist()):
        chosen = pc.and_(pc.equal(table["model"], model), pc.less_equal(table["rank"], first))
        rows = table.filter(chosen).sort_by("query_id")
        query_ids, image_ids = (rows[name].to_numpy() for name in ("query_id", "image_id"))
        queries, begins = np.unique(query_ids, return_index=True)
        parts = np.split(image_ids, begins[1:])
        tops[model] = dict(zip(queries.tolist(), parts, strict=False))
    return tops


def _means(runs: Mapping[int, Run], qrels: Qrels, measure: Measure) -> tuple[Floats, int]:
    """The runs' means (r,), and over how many queries they are."""
    scores = score_runs(list(runs.values()), qrels, [measure])[measure.key]
    queries = int((qrels.totals() > 0).sum())
    if not queries:
        return np.full(len(runs), np.nan), 0
    return settled(scores.mean(axis=1), mean_margin(queries, measure)), queries
