"""An evaluation as a table for people and as data for programs."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

from benchmark.evaluation import Evaluation, Scores
from labeling.query_csv import QueryRow

#: How each measure is called, with its cut-off; a mean of reciprocal ranks is called MRR.
_NAMES: Final = {"precision": "P", "recall": "R", "ap": "AP", "ndcg": "nDCG", "rr": "RR"}
_MEAN_NAMES: Final = {"precision": "P", "recall": "R", "ap": "mAP", "ndcg": "nDCG", "rr": "MRR"}


def evaluation_data(evaluation: Evaluation, queries: Mapping[int, QueryRow]) -> dict[str, Any]:
    """Everything that an evaluation says, for JSON; `mean` is None where no query is scored."""
    mean = evaluation.mean
    return {
        "k": evaluation.k,
        "mean": None if mean is None else _measures(mean, mean_names=True),
        "scored": len(evaluation.queries),
        "queries": [
            {
                "query_id": query.query_id,
                "query_text": queries[query.query_id].query_text,
                "split": queries[query.query_id].split,
                "positives": query.positives,
                "retrieved": query.retrieved,
                **_measures(query.scores, mean_names=False),
            }
            for query in evaluation.queries
        ],
        "missed": evaluation.missed,
        "without_positives": evaluation.without_positives,
        "unknown": evaluation.unknown,
    }


def evaluation_lines(evaluation: Evaluation, queries: Mapping[int, QueryRow]) -> Iterator[str]:
    """The lines of a report: a table with a row for each query, the means, and what was left
    out."""
    k = evaluation.k
    names = [f"{name}@{k}" for name in _NAMES.values()]
    yield " ".join(["   query", "     R", *(f"{name:>9}" for name in names), " text"])
    for query in evaluation.queries:
        text = " ".join(queries[query.query_id].query_text.split())
        yield f"{query.query_id:>8} {query.positives:>6} {_row(query.scores)}  {text[:60]}"
    if evaluation.mean is None:
        yield "No query has a relevant image in this release, so there is nothing to average."
    else:
        yield ""
        yield f"Means over {len(evaluation.queries)} queries with relevant images:"
        for measure, name in _MEAN_NAMES.items():
            yield f"  {f'{name}@{k}':<10} {getattr(evaluation.mean, measure):.4f}"
    notes = (
        ("Missing in the run, scored 0", evaluation.missed),
        ("Without relevant images, left out", evaluation.without_positives),
        ("Unknown to the release, not scored", evaluation.unknown),
    )
    for note, query_ids in notes:
        if query_ids:
            yield f"{note}: {len(query_ids)} ({', '.join(map(str, query_ids))})"


def _row(scores: Scores) -> str:
    return " ".join(f"{getattr(scores, measure):>9.4f}" for measure in _NAMES)


def _measures(scores: Scores, *, mean_names: bool) -> dict[str, float]:
    renamed = {"ap": "map", "rr": "mrr"} if mean_names else {}
    return {
        renamed.get(measure.name, measure.name): getattr(scores, measure.name)
        for measure in fields(Scores)
    }
