"""Run files: rankings of images per query, as TREC run files or as CSV.

TREC lines are `query_id Q0 image_id rank score tag`, separated by blanks; the rank is not looked
at. CSV files have a header with the columns query_id, image_id and score; others are ignored. Ranks
follow from the scores alone: higher first, and the smaller image id first among equal scores.
"""

import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, Literal, TextIO

import numpy as np
import numpy.typing as npt

from benchmark.tables import MAX_ERRORS, csv_records, numbered_texts, whole_number
from labeling.query_csv import RowError

CSV_COLUMNS: Final = ("query_id", "image_id", "score")
TREC_FIELDS: Final = 6


@dataclass(frozen=True, slots=True)
class Ranking:
    """One query's retrieved images, best first; arrays of the same length."""

    image_ids: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RunLine:
    """One retrieved image of a run to be written."""

    query_id: int
    image_id: int
    rank: int
    score: float


@dataclass(slots=True)
class _Column:
    """One query's rows in the file's order, 24 bytes a row."""

    image_ids: "array[int]" = field(default_factory=lambda: array("q"))
    scores: "array[float]" = field(default_factory=lambda: array("d"))
    lines: "array[int]" = field(default_factory=lambda: array("q"))


Fields = tuple[int, str, str, str]


def run_format(first_line: str) -> Literal["csv", "trec"]:
    """The format that a file's first line that isn't blank belongs to: a comma makes it CSV.

    Unless it stands in the tag of a line that is a TREC line otherwise.
    """
    fields = first_line.split()
    if len(fields) == TREC_FIELDS and not any("," in field for field in fields[:-1]):
        return "trec"
    return "csv" if "," in first_line else "trec"


def read_run(
    lines: Iterable[str | bytes], *, name: str
) -> tuple[dict[int, Ranking], list[RowError]]:
    """Read a run file: the ranking of each query in it, and everything that is wrong.

    `lines` is an open file in text or binary mode; `name` is its name for messages. The format is
    told by the content. Rows of one query may stand anywhere. Never raises for what the file holds:
    callers refuse it whole when there is any error, of which at most MAX_ERRORS are collected.
    """
    errors: list[RowError] = []
    columns: dict[int, _Column] = {}
    for line, query_text, image_text, score_text in _fields(lines, name, errors):
        before = len(errors)
        query_id = whole_number(query_text)
        if query_id is None:
            message = f"{query_text[:40]!r} is not a whole number"
            errors.append(RowError(name, line, "query_id", message))
        image_id = whole_number(image_text)
        if image_id is None:
            message = f"{image_text[:40]!r} is not a whole number"
            errors.append(RowError(name, line, "image_id", message))
        score = _finite_number(score_text)
        if score is None:
            message = f"{score_text[:40]!r} is not a finite number"
            errors.append(RowError(name, line, "score", message))
        if query_id is not None and image_id is not None and score is not None:
            column = columns.setdefault(query_id, _Column())
            column.image_ids.append(image_id)
            column.scores.append(score)
            column.lines.append(line)
        if len(errors) > before and len(errors) >= MAX_ERRORS:
            return {}, errors[:MAX_ERRORS]
    run = {}
    for query_id, column in columns.items():
        errors += _duplicates(query_id, column, name)
        run[query_id] = _ranked(column)
    errors.sort(key=lambda error: error.line)
    return run, errors[:MAX_ERRORS]


def write_trec(rows: Iterable[RunLine], file: TextIO, *, tag: str) -> int:
    """Write a TREC run file, row by row; the number of rows.

    Scores are written with every digit, so that reading gives the same order. Blanks in the tag
    become "_".
    """
    word = "_".join(tag.split()) or "run"
    count = 0
    for row in rows:
        score = float(row.score)
        file.write(f"{row.query_id} Q0 {row.image_id} {row.rank} {score!r} {word}\n")
        count += 1
    return count


def _fields(lines: Iterable[str | bytes], name: str, errors: list[RowError]) -> Iterator[Fields]:
    """(line, query id, image id, score) as text, of either format."""
    numbered = numbered_texts(lines)
    first = next(((number, text) for number, text in numbered if text.strip()), None)
    if first is None:
        errors.append(RowError(name, 1, "", "the file is empty"))
        return iter(())
    all_lines = chain([first], numbered)
    if run_format(first[1]) == "csv":
        return _csv_fields(all_lines, name, errors)
    return _trec_fields(all_lines, name, errors)


def _trec_fields(
    lines: Iterable[tuple[int, str]], name: str, errors: list[RowError]
) -> Iterator[Fields]:
    for number, text in lines:
        fields = text.split()
        if not fields:
            continue
        if len(fields) != TREC_FIELDS:
            message = (
                f"{len(fields)} fields where a TREC run has {TREC_FIELDS}: "
                "query_id Q0 image_id rank score tag"
            )
            errors.append(RowError(name, number, "", message))
            if len(errors) >= MAX_ERRORS:
                return
            continue
        yield number, fields[0], fields[2], fields[4]


def _csv_fields(
    lines: Iterable[tuple[int, str]], name: str, errors: list[RowError]
) -> Iterator[Fields]:
    records = csv_records(lines, name=name, columns=CSV_COLUMNS, errors=errors)
    for line, (query_id, image_id, score) in records:
        yield line, query_id, image_id, score


def _finite_number(text: str) -> float | None:
    # float() also takes "1_000", which is no number in any run format.
    if not text.isascii() or "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _duplicates(query_id: int, column: _Column, name: str) -> list[RowError]:
    """An error for each row whose image an earlier row of the query has."""
    ids = np.frombuffer(column.image_ids, dtype=np.int64)
    order = np.argsort(ids, kind="stable")
    again = order[1:][ids[order[1:]] == ids[order[:-1]]]
    return [
        RowError(name, column.lines[row], "image_id", f"{ids[row]} stands twice for {query_id=}")
        for row in again[:MAX_ERRORS].tolist()
    ]


def _ranked(column: _Column) -> Ranking:
    ids = np.array(column.image_ids, dtype=np.int64)
    scores = np.array(column.scores, dtype=np.float64)
    order = np.lexsort((ids, -scores))
    return Ranking(image_ids=ids[order], scores=scores[order])
