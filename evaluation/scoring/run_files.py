"""Run files: rankings of images per query, as TREC run files, CSV, JSON lines or nested JSON.

TREC lines are `query_id Q0 image_id rank score tag`, separated by blanks; the rank is ignored. CSV
files have a header with the columns query_id, image_id and score; others are ignored. JSON lines
files have an object with these keys in each line; other keys are ignored. Nested JSON is one object
{query_id: {image_id: score}}, as BEIR and ranx store runs. Each may be compressed with gzip. Ranks
follow from the scores alone: higher first, and the smaller image id first among equal scores.
"""

import codecs
import json
import math
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import IO, Final, Literal, TextIO

import numpy as np
import numpy.typing as npt

from core.csv_rows import MAX_ERRORS, RowError, csv_rows
from core.ids import LARGEST_ID, id_of
from core.line_stream import MAX_BYTES, Unreadable, chunks, lines_of

COLUMNS: Final = ("query_id", "image_id", "score")
TREC_FIELDS: Final = 6
#: Rows whose images are checked at a time.
IDS_AT_A_TIME: Final = 10_000

_SHOWN: Final = 40
#: What ijson calls a value that is neither an object nor a list.
_VALUES: Final = ("number", "string", "boolean", "null")


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
class _QueryRows:
    """One query's rows in the file's order, 24 bytes a row."""

    image_ids: "array[int]" = field(default_factory=lambda: array("q"))
    scores: "array[float]" = field(default_factory=lambda: array("d"))
    lines: "array[int]" = field(default_factory=lambda: array("q"))


#: A row's line, and its query id, image id and score as written.
Fields = tuple[int, object, object, object]
UnknownImages = Callable[[Sequence[int]], Collection[int]]
AllowedImages = Mapping[int, Collection[int]]
#: Turns an id as written into a number, or None if it isn't an id.
ReadId = Callable[[object], int | None]


def run_format(first_line: str) -> Literal["csv", "trec", "jsonl"]:
    """The format of a file by its first line that isn't blank.

    A line that begins with a brace is JSON lines; one with a comma is CSV, unless the comma is in
    the tag of a TREC line.
    """
    if first_line.lstrip().startswith("{"):
        return "jsonl"
    fields = first_line.split()
    if len(fields) == TREC_FIELDS and not any("," in field for field in fields[:-1]):
        return "trec"
    return "csv" if "," in first_line else "trec"


def read_run(
    file: IO[bytes],
    *,
    name: str,
    queries: Mapping[int, str] | None = None,
    split: str | None = None,
    unknown_images: UnknownImages | None = None,
    allowed_images: AllowedImages | None = None,
    max_bytes: int = MAX_BYTES,
    ids: tuple[ReadId, ReadId] | None = None,
) -> tuple[dict[int, Ranking], list[RowError]]:
    """Read a run file: the ranking of each query in it, and all errors.

    `name` is the file's name for messages. The format, and whether it is compressed, follows from
    the content. The rows of a query may be anywhere. `queries` has the split of each query of the
    release; an unknown query and a query of another split than `split` are errors, each named once,
    where it first occurs. `unknown_images` gets up to IDS_AT_A_TIME different image
    ids, ascending, and returns those that don't exist. For re-ranking, `allowed_images` has the
    images that each query may hold; a query that isn't in it is an error. `ids` turn query ids and
    image ids that may be any text into numbers; without them ids are whole numbers. Other errors:
    a wrong number of fields, no whole or finite number, an image twice for a query, no row, and
    more than `max_bytes` bytes of decompressed text.

    Never raises for what the file holds: callers refuse the whole file if there is any error. At
    most MAX_ERRORS errors are collected, by line. Memory grows with the rankings alone, by 24 bytes
    a row.
    """
    errors: list[RowError] = []
    rows = _Rows(name, errors, queries, split, unknown_images, allowed_images, ids or (_id, _id))
    try:
        for line, query, image, score in _fields(file, name, errors, max_bytes):
            rows.add(line, query, image, score)
            if len(errors) >= MAX_ERRORS:
                break
        else:
            rows.finish()
    except Unreadable as error:
        errors.append(RowError(name, error.line, "", str(error)))
    errors.sort(key=lambda error: error.line)
    return ({} if errors else rows.rankings()), errors[:MAX_ERRORS]


def write_trec(rows: Iterable[RunLine], file: TextIO, *, tag: str) -> int:
    """Write a TREC run file row by row; returns the number of rows.

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


class _Rows:
    """Collects rows by query and checks them."""

    def __init__(
        self,
        name: str,
        errors: list[RowError],
        queries: Mapping[int, str] | None,
        split: str | None,
        unknown_images: UnknownImages | None,
        allowed_images: AllowedImages | None,
        ids: tuple[ReadId, ReadId],
    ) -> None:
        self._name = name
        self._errors = errors
        self._queries = queries
        self._split = split
        self._unknown_images = unknown_images
        self._allowed_images = allowed_images
        self._query_id, self._image_id = ids
        self._by_query: dict[int, _QueryRows] = {}
        self._refused: set[int] = set()
        self._unchecked: dict[int, list[int]] = {}
        self._waiting = 0
        self._last_line = 0

    def add(self, line: int, query: object, image: object, score: object) -> None:
        """Check a row and add it."""
        self._last_line = line
        query_id, image_id = self._query_id(query), self._image_id(image)
        number = _finite_number(score)
        if query_id is None:
            self._error(line, "query_id", f"{_shown(query)} is not a whole number")
        if image_id is None:
            self._error(line, "image_id", f"{_shown(image)} is not a whole number")
        if number is None:
            self._error(line, "score", f"{_shown(score)} is not a finite number")
        if query_id is None or image_id is None or number is None:
            return
        rows = self._by_query.get(query_id)
        if rows is None:
            if not self._is_allowed(query_id, line):
                return
            rows = self._by_query[query_id] = _QueryRows()
        if self._allowed_images is not None and image_id not in self._allowed_images[query_id]:
            message = f"image {image_id} is not in the fixed list of query {query_id}"
            self._error(line, "image_id", message)
            return
        rows.image_ids.append(image_id)
        rows.scores.append(number)
        rows.lines.append(line)
        if self._unknown_images is not None:
            self._unchecked.setdefault(image_id, []).append(line)
            self._waiting += 1
            if self._waiting >= IDS_AT_A_TIME:
                self._check_images()

    def finish(self) -> None:
        """Find the errors that show only at the end of the file."""
        if not self._last_line and not self._errors:
            self._error(1, "", "the file holds no row")
        self._check_images()
        for query_id, rows in self._by_query.items():
            self._errors += _duplicates(query_id, rows, self._name)

    def rankings(self) -> dict[int, Ranking]:
        """The ranking of each query."""
        return {query_id: _ranked(rows) for query_id, rows in self._by_query.items()}

    def _error(self, line: int, column: str, message: str) -> None:
        self._errors.append(RowError(self._name, line, column, message))

    def _is_allowed(self, query_id: int, line: int) -> bool:
        """Whether a new query may be in the run; if not, adds an error the first time."""
        problem = self._problem(query_id)
        if problem and query_id not in self._refused and len(self._refused) < MAX_ERRORS:
            self._refused.add(query_id)
            self._error(line, "query_id", problem)
        return not problem

    def _problem(self, query_id: int) -> str:
        """Why a query may not be in the run; empty if it may."""
        if self._queries is not None:
            split = self._queries.get(query_id)
            if split is None:
                return f"the release has no query {query_id}"
            if self._split not in (None, split):
                return f"query {query_id} is of the split {split}, not {self._split}"
        if self._allowed_images is not None and query_id not in self._allowed_images:
            return f"query {query_id} has no fixed list that is fit for re-ranking"
        return ""

    def _check_images(self) -> None:
        if self._unknown_images is None or not self._unchecked:
            return
        for image_id in self._unknown_images(sorted(self._unchecked)):
            for line in self._unchecked[image_id][:MAX_ERRORS]:
                self._error(line, "image_id", f"there is no image {image_id}")
        self._unchecked.clear()
        self._waiting = 0


def _fields(file: IO[bytes], name: str, errors: list[RowError], max_bytes: int) -> Iterator[Fields]:
    """The query id, image id and score of each row, in any format."""
    pieces = chunks(file, max_bytes=max_bytes)
    first = next(pieces, b"")
    pieces = chain([first], pieces)
    start = first.removeprefix(codecs.BOM_UTF8).lstrip()
    if start.startswith(b"{") and b'"query_id"' not in start.partition(b"\n")[0]:
        return _nested_fields(pieces, name, errors)
    lines = lines_of(pieces)
    head = []
    for number, text in lines:
        head.append((number, text))
        if text.strip():
            break
    else:
        errors.append(RowError(name, 1, "", "the file is empty"))
        return iter(())
    readers = {"jsonl": _json_fields, "csv": _csv_fields, "trec": _trec_fields}
    return readers[run_format(text)](chain(head, lines), name, errors)


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
    texts = (text for _, text in lines)
    for line, row in csv_rows(texts, name=name, required=COLUMNS, errors=errors, others=True):
        yield line, row["query_id"].strip(), row["image_id"].strip(), row["score"]


def _json_fields(
    lines: Iterable[tuple[int, str]], name: str, errors: list[RowError]
) -> Iterator[Fields]:
    for number, text in lines:
        if text.isspace():
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            errors.append(RowError(name, number, "", "not a JSON object"))
        elif missing := [column for column in COLUMNS if column not in row]:
            errors += [RowError(name, number, column, "this key is missing") for column in missing]
        else:
            yield number, row["query_id"], row["image_id"], row["score"]
        if len(errors) >= MAX_ERRORS:
            return


def _nested_fields(pieces: Iterator[bytes], name: str, errors: list[RowError]) -> Iterator[Fields]:
    # Imported here since it is slow.
    import ijson

    line = 1

    def counted() -> Iterator[bytes]:
        nonlocal line
        for index, piece in enumerate(pieces):
            yield piece if index else piece.removeprefix(codecs.BOM_UTF8)
            line += piece.count(b"\n")

    depth, keys = 0, ["", ""]
    try:
        for event, value in ijson.basic_parse(ijson.from_iter(counted()), use_float=True):
            if event == "map_key":
                keys[depth - 1] = value
            elif event in ("start_map", "end_map"):
                depth += 1 if event == "start_map" else -1
            if depth > 2 or event == "start_array" or (depth < 2 and event in _VALUES):
                message = "not an object {query_id: {image_id: score}}"
                errors.append(RowError(name, line, "", message))
                return
            if event in _VALUES:
                yield line, *keys, value
    except ijson.JSONError as error:
        errors.append(RowError(name, line, "", f"not JSON: {str(error).splitlines()[0]}"))


def _id(value: object) -> int | None:
    """An id from 0 to 2**63 - 1, in plain digits or as JSON's number; None for anything else."""
    if isinstance(value, str):
        return id_of(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_ID:
        return value
    return None


def _finite_number(value: object) -> float | None:
    if isinstance(value, str):
        # float() also takes "1_000", which is no number in any run format.
        if not value.isascii() or "_" in value:
            return None
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _shown(value: object) -> str:
    return repr(value[:_SHOWN]) if isinstance(value, str) else json.dumps(value)[:_SHOWN]


def _duplicates(query_id: int, rows: _QueryRows, name: str) -> list[RowError]:
    """An error for each row whose image an earlier row of the query has."""
    ids = np.frombuffer(rows.image_ids, dtype=np.int64)
    order = np.argsort(ids, kind="stable")
    repeats = order[1:][ids[order[1:]] == ids[order[:-1]]]
    return [
        RowError(name, rows.lines[row], "image_id", f"{ids[row]} is listed twice for {query_id=}")
        for row in repeats[:MAX_ERRORS].tolist()
    ]


def _ranked(rows: _QueryRows) -> Ranking:
    ids = np.array(rows.image_ids, dtype=np.int64)
    scores = np.array(rows.scores, dtype=np.float64)
    order = np.lexsort((ids, -scores))
    return Ranking(image_ids=ids[order], scores=scores[order])
