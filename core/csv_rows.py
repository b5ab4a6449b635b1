"""What the readers of CSV files in this app share: records with lines, and ids."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
