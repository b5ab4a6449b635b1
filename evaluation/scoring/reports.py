"""An evaluation as a table for people and as data for programs.

`queries` has the text and split of the queries, as far as they are known; `ties` is what the order
of equal scores can change, None where that isn't computed; `names` has the original ids of queries
where numbers replace them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluation.scoring.evaluation import Evaluation
from evaluation.scoring.ties import TieRange
from labeling.queries.files import QueryRow


def evaluation_data(
    evaluation: Evaluation,
    queries: Mapping[int, QueryRow],
    ties: TieRange | None = None,
    names: Sequence[str] | None = None,
) -> dict[str, Any]:
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
                "query_id": _name(query_id, names),
                "query_text": queries[query_id].query_text if query_id in queries else None,
                "split": queries[query_id].split if query_id in queries else None,
                "positives": evaluation.positives[index],
                "retrieved": evaluation.retrieved[index],
                "scores": {key: float(values[index]) for key, values in evaluation.scores.items()},
            }
            for index, query_id in enumerate(evaluation.query_ids)
        ],
        "ties": None
        if ties is None
        else {
            "queries": [_name(query_id, names) for query_id in ties.query_ids],
            "mean": {key: list(bounds) for key, bounds in ties.means.items()},
        },
        "missed": [_name(query_id, names) for query_id in evaluation.missed],
        "without_positives": [_name(query_id, names) for query_id in evaluation.without_positives],
        "unknown": [_name(query_id, names) for query_id in evaluation.unknown],
    }


def evaluation_lines(
    evaluation: Evaluation,
    queries: Mapping[int, QueryRow],
    ties: TieRange | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[str]:
    """The lines of a report: a table with a row for each query, the means, and what was left
    out."""
    widths = {measure.key: max(9, len(measure.key)) for measure in evaluation.measures}
    keys = [f"{key:>{width}}" for key, width in widths.items()]
    yield " ".join(["   query", "     R", *keys, " text"])
    for index, query_id in enumerate(evaluation.query_ids):
        text = " ".join(queries[query_id].query_text.split()) if query_id in queries else ""
        row = " ".join(
            f"{evaluation.scores[key][index]:>{width}.4f}" for key, width in widths.items()
        )
        name = _name(query_id, names)
        yield f"{name:>8} {evaluation.positives[index]:>6} {row}  {text[:60]}".rstrip()
    if not evaluation.query_ids:
        yield "No query has a relevant image in this release, so there is nothing to average."
    else:
        yield ""
        yield f"Means over {len(evaluation.query_ids)} queries with relevant images:"
        for measure in evaluation.measures:
            yield f"  {measure.mean_name:<12} {evaluation.mean(measure):.4f}"
    if ties is not None and ties.query_ids:
        yield ""
        yield (
            f"The order of images with equal scores moves scores of {len(ties.query_ids)} of the "
            "queries. Here the smaller id goes first; in another order the means are"
        )
        for measure in evaluation.measures:
            if measure.key in ties.means:
                least, most = ties.means[measure.key]
                yield f"  {measure.mean_name:<12} {least:.4f} to {most:.4f}"
    notes = (
        ("Missing in the run, scored 0", evaluation.missed),
        ("Without relevant images, left out", evaluation.without_positives),
        ("Unknown to the release, not scored", evaluation.unknown),
    )
    for note, query_ids in notes:
        if query_ids:
            named = ", ".join(str(_name(query_id, names)) for query_id in query_ids)
            yield f"{note}: {len(query_ids)} ({named})"


def _name(query_id: int, names: Sequence[str] | None) -> int | str:
    return query_id if names is None else names[query_id]
