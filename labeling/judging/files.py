"""Reader of judgments that were made elsewhere."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from core.csv_rows import RowError
from labeling.candidates.stopping import RELEVANCES, RELEVANT

REQUIRED_COLUMNS: Final = ("query_id", "image_id")
#: image_path stands in INQUIRE's annotations file; nothing is made of it.
OPTIONAL_COLUMNS: Final = ("relevance", "image_path")
MAX_IMAGE_ID: Final = 2**63 - 1
MAX_QUERY_ID: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class JudgmentRow:
    """One judgment of a file."""

    query_id: int
    image_id: int
    relevance: str
    """"relevant", "not_relevant" or "unsure"; relevant throughout where the file has no such
    column.
    """
    line: int
    """The line of the file on which the row begins, from 1."""


def read_judgments(
    lines: Iterable[bytes], *, name: str
) -> tuple[list[JudgmentRow], list[RowError]]:
    """Read a CSV of query_id, image_id and relevance: the rows, and everything that is wrong.

    `lines` is a file opened in binary mode; `name` is its name for messages. Without a relevance
    column every row is relevant, as in INQUIRE's annotations file. Never raises for what the file
    holds: callers refuse the file whole when there is any error. A row whose ids can be read is
    given even if its relevance is wrong, so that a caller can say too whether there are such a
    query and image; a pair is given once.
    """
    errors: list[RowError] = []
    rows: list[JudgmentRow] = []
    first_lines: dict[tuple[int, int], int] = {}
    for line, fields in _records(lines, name, errors):
        row = _row(line, fields, name, errors)
        if row is None:
            continue
        pair = (row.query_id, row.image_id)
        if pair in first_lines:
            message = (
                f"query {pair[0]} and image {pair[1]} stand already on line {first_lines[pair]}"
            )
            errors.append(RowError(name, line, "image_id", message))
            continue
        first_lines[pair] = line
        rows.append(row)
    return rows, errors


def _text(lines: Iterable[bytes], name: str, errors: list[RowError]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            errors.append(RowError(name, number, "", "not UTF-8 text; save the file as UTF-8"))
            return
        if "\0" in text:
            errors.append(RowError(name, number, "", "holds NUL bytes; is this a text file?"))
            return
        yield text


def _records(
    lines: Iterable[bytes], name: str, errors: list[RowError]
) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.reader(_text(lines, name, errors), strict=True)
    columns: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            fields = [field.strip() for field in next(reader)]
        except StopIteration:
            break
        except csv.Error as error:
            errors.append(
                RowError(name, line, "", f"not readable as CSV ({error}); check the quotes")
            )
            return
        if not any(fields):
            continue
        if columns is None:
            columns = fields
            if not _header_is_right(line, columns, name, errors):
                return
        elif len(fields) != len(columns):
            message = f"{len(fields)} fields where the header has {len(columns)}"
            errors.append(RowError(name, line, "", message))
        else:
            yield line, dict(zip(columns, fields, strict=True))
    if columns is None and not errors:
        errors.append(RowError(name, 1, "", "the file is empty; a header line is needed"))


def _header_is_right(line: int, columns: list[str], name: str, errors: list[RowError]) -> bool:
    found = [
        RowError(name, line, column, "the column is missing from the header")
        for column in REQUIRED_COLUMNS
        if column not in columns
    ]
    known = (*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS)
    found += [
        RowError(name, line, column, f"unknown column; known are {', '.join(known)}")
        for column in columns
        if column and column not in known
    ]
    found += [
        RowError(name, line, column or "(unnamed)", "the column stands twice in the header")
        for column in sorted({column for column in columns if columns.count(column) > 1})
    ]
    errors += found
    return not found


def _row(
    line: int, fields: dict[str, str], name: str, errors: list[RowError]
) -> JudgmentRow | None:
    numbers = {}
    for column, largest in (("query_id", MAX_QUERY_ID), ("image_id", MAX_IMAGE_ID)):
        text = fields[column]
        if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= largest:
            numbers[column] = int(text)
        else:
            errors.append(RowError(name, line, column, f"{text[:40]!r} is not a whole number"))
    relevance = fields.get("relevance", RELEVANT)
    if relevance not in RELEVANCES:
        message = f"{relevance[:40]!r} is none of {', '.join(sorted(RELEVANCES))}"
        errors.append(RowError(name, line, "relevance", message))
    return JudgmentRow(**numbers, relevance=relevance, line=line) if len(numbers) == 2 else None
