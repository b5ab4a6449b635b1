"""The reader of CSV files: rows with their lines, and errors by file, line and field."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from textwrap import shorten
from typing import Final

from core.text import printable

#: A file with this many errors is read no further.
MAX_ERRORS: Final = 100

#: Characters of a header that a message repeats.
_SHOWN: Final = 200
_LARGEST_ID: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RowError:
    """Why a row, or with line 1 and a column's name the whole file, can't be read."""

    file: str
    line: int
    field: str
    """The column's name; empty where the error is of the whole row."""
    message: str

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}"
        return printable(
            f"{where}, {self.field}: {self.message}" if self.field else f"{where}: {self.message}"
        )


def numbered_texts(lines: Iterable[str | bytes]) -> Iterator[tuple[int, str]]:
    """(line from 1, text) of each line, without the byte order mark.

    Bytes that are not UTF-8 become replacement characters, which no number and no column name
    holds.
    """
    for number, line in enumerate(lines, start=1):
        text = line.decode("utf-8", errors="replace") if isinstance(line, bytes) else line
        yield number, text.removeprefix("\ufeff") if number == 1 else text


def csv_records(
    lines: Iterable[tuple[int, str]],
    *,
    name: str,
    columns: Sequence[str],
    errors: list[RowError],
) -> Iterator[tuple[int, list[str]]]:
    """(line, stripped fields of `columns` in that order) of each record under the header.

    Other columns and blank lines are ignored. What is wrong goes into `errors`; a header without
    one of the columns ends the reading, as do MAX_ERRORS errors.
    """
    position = 0

    def texts() -> Iterator[str]:
        nonlocal position
        for number, text in lines:
            position = number
            yield text

    # Strict, so that a quote that is never closed is an error instead of swallowing the rest.
    records = csv.reader(texts(), strict=True)
    header: list[str] | None = None
    where: list[int] = []
    while len(errors) < MAX_ERRORS:
        try:
            fields = next(records)
        except StopIteration:
            if header is None:
                message = f"the file is empty; a header with {', '.join(columns)} is needed"
                errors.append(RowError(name, 1, "", message))
            return
        except csv.Error as error:
            message = f"not readable as CSV ({error}); check the quotes"
            errors.append(RowError(name, position, "", message))
            continue
        if not fields:
            continue
        if header is None:
            header = [column.strip() for column in fields]
            missing = [column for column in columns if header.count(column) != 1]
            named = shorten(", ".join(header), width=_SHOWN, placeholder=" …")
            named = "".join(char if char.isprintable() else "\ufffd" for char in named)
            for column in missing:
                message = f"the header must name this column once; it names {named}"
                errors.append(RowError(name, position, column, message))
            if missing:
                return
            where = [header.index(column) for column in columns]
        elif len(fields) != len(header):
            message = f"{len(fields)} fields where the header has {len(header)}"
            errors.append(RowError(name, position, "", message))
        else:
            yield position, [fields[index].strip() for index in where]


def csv_rows(
    lines: Iterable[str | bytes],
    *,
    name: str,
    required: Sequence[str],
    optional: Sequence[str],
    errors: list[RowError],
    others: bool = False,
) -> Iterator[tuple[int, dict[str, str]]]:
    """(first line, verbatim fields by column) of each record under the header.

    `lines` is an open file or upload, best in binary mode, so that bytes that are not UTF-8 are
    named by line; a byte order mark and CRLF are understood. Blank records are passed over, those
    that can't be read are named in `errors`, which is empty at the start. Nothing is read under a
    header that lacks a required column, has a column twice or, without `others`, has one with a
    name that is neither required nor optional.
    """
    records = _records(lines, name, errors)
    line, header = next(records, (1, []))
    columns = [column.strip() for column in header]
    if not columns and not errors:
        errors.append(RowError(name, 1, "", "the file is empty; a header line is needed"))
    if errors:
        return
    known = (*required, *optional)
    for column in required:
        if column not in columns:
            errors.append(RowError(name, line, column, "the column is missing from the header"))
    for column in sorted(column for column, times in Counter(columns).items() if times > 1):
        message = "the column stands twice in the header"
        errors.append(RowError(name, line, column or "(unnamed)", message))
    for column in columns:
        if column and column not in known and not others:
            message = f"unknown column; known are {', '.join(known)}"
            errors.append(RowError(name, line, column, message))
    if errors:
        return
    for line, fields in records:
        if len(fields) == len(columns):
            yield line, dict(zip(columns, fields, strict=True))
        else:
            message = f"{len(fields)} fields where the header has {len(columns)}; a field with a "
            errors.append(RowError(name, line, "", message + "comma must stand in quotes"))


def _records(
    lines: Iterable[str | bytes], name: str, errors: list[RowError]
) -> Iterator[tuple[int, list[str]]]:
    """(first line, fields) of each record that is neither blank nor broken."""
    undecodable: set[int] = set()
    # Strict, so that a quote that is never closed is an error instead of swallowing the rest.
    records = csv.reader(_utf8_lines(lines, name, undecodable, errors), strict=True)
    while True:
        line = records.line_num + 1
        try:
            fields = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            message = f"not readable as CSV ({error}); check the quotes"
            errors.append(RowError(name, line, "", message))
            continue
        if not undecodable.isdisjoint(range(line, records.line_num + 1)):
            continue
        if any("\0" in field for field in fields):
            errors.append(RowError(name, line, "", "holds NUL bytes; is this a text file?"))
        elif any(field.strip() for field in fields):
            yield line, fields


def _utf8_lines(
    lines: Iterable[str | bytes], name: str, undecodable: set[int], errors: list[RowError]
) -> Iterator[str]:
    """Lines as text without the byte order mark; adds those that are not UTF-8 to `undecodable`."""
    source = iter(lines)
    for number in count(1):
        try:
            line = next(source)
        except StopIteration:
            return
        except UnicodeDecodeError:
            message = "not UTF-8 text from about this line on; save it as UTF-8"
            errors.append(RowError(name, number, "", message))
            return
        # A text file opened with errors="surrogateescape" marks undecodable bytes by surrogates.
        data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        if number == 1 and data.startswith((b"\xff\xfe", b"\xfe\xff")):
            errors.append(RowError(name, 1, "", "the file is UTF-16; save it as UTF-8"))
            return
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            undecodable.add(number)
            errors.append(RowError(name, number, "", "not UTF-8 text; save the file as UTF-8"))
            text = data.decode("utf-8", errors="replace")
        yield text.removeprefix("\ufeff") if number == 1 else text


def whole_number(text: str) -> int | None:
    """The id from 0 to 2**63 - 1 that `text` writes in plain digits, or None."""
    if not (text.isascii() and text.isdigit()) or len(text) > 19:
        return None
    number = int(text)
    return number if number <= _LARGEST_ID else None


_NEEDS_QUOTES: Final = re.compile('[,"\r\n]')


def csv_field(text: str) -> str:
    """`text` as one CSV field: quoted only where it must be.

    The csv module of Python 3.11 leaves a carriage return unquoted, which its own reader then
    refuses.
    """
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text
