"""An evaluation as a table for people and as data for programs."""

from collections.abc import Iterator, Mapping
from typing import Any

from benchmark.scoring.evaluation import Evaluation
from benchmark.scoring.measures import mean_name
from labeling.queries.files import QueryRow


def evaluation_data(evaluation: Evaluation, queries: Mapping[int, QueryRow]) -> dict[str, Any]:
    """Everything that an evaluation says, for JSON; `mean` is None where no query is scored."""
    measures = evaluation.measures
    return {
        "measures": [measure.key for measure in measures],
        "mean": (
            {measure.key: evaluation.mean(measure) for measure in measures}
            if evaluation.query_ids
            else None
        ),
        "scored": len(evaluation.query_ids),
        "queries": [
            {
                "query_id": query_id,
                "query_text": queries[query_id].query_text,
                "split": queries[query_id].split,
                "positives": evaluation.positives[place],
                "retrieved": evaluation.retrieved[place],
                "scores": {key: float(values[place]) for key, values in evaluation.scores.items()},
            }
            for place, query_id in enumerate(evaluation.query_ids)
        ],
        "missed": evaluation.missed,
        "without_positives": evaluation.without_positives,
        "unknown": evaluation.unknown,
    }


def evaluation_lines(evaluation: Evaluation, queries: Mapping[int, QueryRow]) -> Iterator[str]:
    """The lines of a report: a table with a row for each query, the means, and what was left
    out."""
    widths = {measure.key: max(9, len(measure.key)) for measure in evaluation.measures}
    names = [f"{key:>{width}}" for key, width in widths.items()]
    yield " ".join(["   query", "     R", *names, " text"])
    for place, query_id in enumerate(evaluation.query_ids):
        text = " ".join(queries[query_id].query_text.split())
        row = " ".join(
            f"{evaluation.scores[key][place]:>{width}.4f}" for key, width in widths.items()
        )
        yield f"{query_id:>8} {evaluation.positives[place]:>6} {row}  {text[:60]}"
    if not evaluation.query_ids:
        yield "No query has a relevant image in this release, so there is nothing to average."
    else:
        yield ""
        yield f"Means over {len(evaluation.query_ids)} queries with relevant images:"
        for measure in evaluation.measures:
            yield f"  {mean_name(measure):<12} {evaluation.mean(measure):.4f}"
    notes = (
        ("Missing in the run, scored 0", evaluation.missed),
        ("Without relevant images, left out", evaluation.without_positives),
        ("Unknown to the release, not scored", evaluation.unknown),
    )
    for note, query_ids in notes:
        if query_ids:
            yield f"{note}: {len(query_ids)} ({', '.join(map(str, query_ids))})"
