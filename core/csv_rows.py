"""The one reader of CSV files: rows with their lines, and errors by file, line and field; and how a
field is written.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Final

from core.text import printable

#: A file with this many errors is read no further.
MAX_ERRORS: Final = 100
#: Letters of a field; csv's own limit, 131,072, refuses tables that people have.
MAX_FIELD: Final = 1 << 24

#: Characters of a header that a message repeats.
_SHOWN: Final = 200


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


def csv_rows(
    lines: Iterable[str | bytes],
    *,
    name: str,
    required: Sequence[str],
    optional: Sequence[str] = (),
    errors: list[RowError],
    others: bool = False,
) -> Iterator[tuple[int, dict[str, str]]]:
    """(first line, verbatim fields by column) of each record under the header.

    `lines` is an open file or upload, best in binary mode, so that bytes that are not UTF-8 are
    named by line; a byte order mark, CRLF, capital letters in the header's known names, and
    semicolons or tabs between its names and all fields are understood. Blank records are passed
    over, those that can't be read are added to `errors`; with MAX_ERRORS of them the reading ends.
    Nothing is read under a header that lacks a required column or names one twice, or, without
    `others`, names one that is neither required nor optional. Memory does not grow with the file.
    """
    before = len(errors)
    columns: list[str] = []
    for line, fields in csv_records(lines, name=name, errors=errors):
        if columns and len(fields) == len(columns):
            yield line, dict(zip(columns, fields, strict=True))
        elif columns:
            message = f"{len(fields)} fields where the header has {len(columns)}; a field with a "
            errors.append(RowError(name, line, "", message + "comma must stand in quotes"))
        else:
            known = {column.lower(): column for column in (*required, *optional)}
            columns = [known.get(one.strip().lower(), one.strip()) for one in fields]
            # An unreadable line before it may have been the header.
            if len(errors) == before:
                errors += _header_errors(columns, name, line, required, optional, others=others)
            if len(errors) > before:
                return
    if not columns and len(errors) == before < MAX_ERRORS:
        message = f"the file is empty; a header with {', '.join(required)} is needed"
        errors.append(RowError(name, 1, "", message))


def _header_errors(
    columns: Sequence[str],
    name: str,
    line: int,
    required: Sequence[str],
    optional: Sequence[str],
    *,
    others: bool,
) -> Iterator[RowError]:
    known = (*required, *optional)
    shown = printable(shorten(", ".join(columns), width=_SHOWN, placeholder=" …"))
    for column in required:
        if columns.count(column) != 1:
            message = f"the header must name this column once; it names {shown}"
            yield RowError(name, line, column, message)
    for column in dict.fromkeys(columns):
        if columns.count(column) > 1 and column not in required and (column in known or not others):
            message = "the column stands twice in the header"
            yield RowError(name, line, column or "(unnamed)", message)
        if column and column not in known and not others:
            message = f"unknown column; known are {', '.join(known)}"
            yield RowError(name, line, column, message)


def csv_records(
    lines: Iterable[str | bytes], *, name: str, errors: list[RowError], delimiter: str = ""
) -> Iterator[tuple[int, list[str]]]:
    """(first line, fields) of each record that is neither blank nor broken. Fields are separated by
    the delimiter, or without one as those of the first record are.
    """
    broken: set[int] = set()
    texts = _utf8_lines(lines, name, broken, errors)
    # It holds for the whole process, in which a library may have set another one.
    csv.field_size_limit(MAX_FIELD)
    # Strict, so that a quote that is never closed is an error instead of swallowing the rest.
    records = csv.reader(texts, strict=True, delimiter=delimiter or ",")
    begun = before = 0
    while len(errors) < MAX_ERRORS:
        line = before + records.line_num + 1
        try:
            fields = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            message = f"not readable as CSV ({error}); check the quotes"
            if "field limit" in str(error):
                message = f"a field has more than {MAX_FIELD:,} letters; is a quote never closed?"
            errors.append(RowError(name, line, "", message))
            continue
        if broken and not broken.isdisjoint(range(line, before + records.line_num + 1)):
            continue
        if any(map(str.strip, fields)):
            begun += 1
            first_alone = begun == len(fields) == 1 and not delimiter
            if first_alone and (other := _separator(fields[0])):
                fields = fields[0].split(other)
                before += records.line_num
                records = csv.reader(texts, strict=True, delimiter=other)
            yield line, fields


def _separator(header: str) -> str:
    """What stands between a header's names where it isn't a comma; empty for a single name."""
    return next((one for one in (";", "\t") if one in header), "")


def _utf8_lines(
    lines: Iterable[str | bytes], name: str, broken: set[int], errors: list[RowError]
) -> Iterator[str]:
    """Lines as text without the byte order mark; adds those that are no UTF-8 text to `broken`."""
    number = 0
    try:
        for number, line in enumerate(lines, start=1):
            if isinstance(line, str) and line.isascii() and "\0" not in line:
                yield line
                continue
            # A text file opened with errors="surrogateescape" has surrogates for such bytes.
            data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
            if number == 1 and data.startswith((b"\xff\xfe", b"\xfe\xff")):
                errors.append(RowError(name, 1, "", "the file is UTF-16; save it as UTF-8"))
                return
            text = data.decode("utf-8", errors="replace")
            if "\ufffd" in text and text.encode() != data:
                broken.add(number)
                errors.append(RowError(name, number, "", "not UTF-8 text; save the file as UTF-8"))
            elif "\0" in text:
                broken.add(number)
                errors.append(RowError(name, number, "", "holds NUL bytes; is this a text file?"))
            yield text.removeprefix("\ufeff") if number == 1 else text
    except UnicodeDecodeError:
        message = "not UTF-8 text from about this line on; save it as UTF-8"
        errors.append(RowError(name, number + 1, "", message))


_NEEDS_QUOTES: Final = re.compile('[,"\r\n]')
_FORMULA: Final = re.compile(r"[=+\-@\t\r]")


def csv_field(text: str) -> str:
    """`text` as one CSV field: quoted only where it must be.

    The csv module of Python 3.11 leaves a carriage return unquoted, which its own reader then
    refuses.
    """
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def spreadsheet_text(text: str) -> str:
    """The text, with an apostrophe before one that a spreadsheet would take for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text
