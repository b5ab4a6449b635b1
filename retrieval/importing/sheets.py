"""Tables in whatever files people keep them: a header, and rows of texts with their numbers."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Final

from core.csv_rows import RowError, csv_records
from core.text import printable
from core.unpacking import Bounds, UnpackRefused, check_unpacked
from retrieval.importing.headers import fields_named, is_canonical
from retrieval.importing.records import ImportRefused

_TEXTS: Final = (".csv", ".tsv", ".txt")
_SPREADSHEETS: Final = (".xlsx", ".ods")
SUFFIXES: Final = (*_TEXTS, *_SPREADSHEETS, ".jsonl", ".parquet")

#: Columns of a table; further ones aren't read.
_MOST_COLUMNS: Final = 1000
#: Rows at the top among which the header is.
_TOP: Final = 20
#: Bytes of a line; of a text's beginning that is looked at.
_MOST_LINE: Final = 1 << 26
_HEAD: Final = 1 << 16
_DELIMITERS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_ENCODINGS: Final = {"utf-8": "UTF-8", "utf-16": "UTF-16", "cp1252": "Windows-1252"}
#: Bytes that come out of a spreadsheet's archive, and seconds that reading it takes.
_MOST_UNPACKED: Final = 1 << 30
_MOST_SECONDS: Final = 600

Row = tuple[int, list[str]]
Records = Callable[[], Iterator[Row]]
"""Reads the rows that aren't blank, the header among them, with their numbers."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table, or one of a workbook's sheets. Memory doesn't grow with its rows."""

    path: Path
    notes: tuple[str, ...]
    """How the file was read, for people."""
    header: tuple[str, ...]
    """A name for each column, all different; none in an empty sheet."""
    unit: str
    """What the numbers of rows count: `line` or `row`."""
    _header_at: int
    _records: Records

    def rows(self) -> Iterator[tuple[int, list[str], str]]:
        """(number, cells, problem) of each row below the header; a row with a problem, a sentence
        without its subject, has other cells than the header.
        """
        width = len(self.header)
        for number, cells in self._records():
            if number <= self._header_at:
                continue
            problem = ""
            if len(cells) < width:
                problem = f"has {len(cells)} fields where the header has {width}"
            elif width < _MOST_COLUMNS and any(map(str.strip, cells[width:])):
                problem = f"has {len(cells)} fields where the header has {width}; a field that "
                problem += "holds what separates fields must stand in quotes"
            yield number, cells[:width], problem


def open_sheets(path: Path) -> list[Sheet]:
    """The sheets of a file that aren't empty; raises ImportRefused for one that can't be read."""
    sheets = [_text_sheet(path)] if path.suffix.lower() in _TEXTS else _workbook_sheets(path)
    if not any(sheet.header for sheet in sheets):
        raise ImportRefused(str(path), "The table is empty.")
    return [sheet for sheet in sheets if sheet.header]


def _sheet(path: Path, records: Records, unit: str, notes: Sequence[str]) -> Sheet:
    """The table whose header is, of the first rows that are at least half as full as the fullest,
    the one that names most fields; titles above it are passed over.
    """
    top = list(islice(records(), _TOP))
    full = [sum(1 for cell in cells if cell.strip()) for _, cells in top]
    wide = [row for row, count in zip(top, full, strict=True) if 2 * count >= max(full)]
    number, cells = max(
        wide, key=lambda row: (is_canonical(row[1]), fields_named(row[1])), default=(0, [])
    )
    # No name is blank or stands twice.
    seen, header = Counter[str](), list[str]()
    for at, cell in enumerate(cells[:_MOST_COLUMNS], start=1):
        name = printable(" ".join(cell.split()))[:200] or f"Column {at}"
        seen[name] += 1
        header.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return Sheet(path, tuple(notes), tuple(header), unit, number, records)


def _text_sheet(path: Path) -> Sheet:
    encoding = _encoding(path)
    with path.open("rb") as file:
        delimiter = _delimiter(file.read(_HEAD).decode(encoding, "replace"))

    def records() -> Iterator[Row]:
        errors: list[RowError] = []
        lines: IO[Any]
        # The reader of CSV names the lines of UTF-8 that are damaged.
        is_utf8 = encoding == "utf-8"
        with path.open("rb") if is_utf8 else path.open(encoding=encoding, newline="") as lines:
            yield from csv_records(lines, name=path.name, errors=errors, delimiter=delimiter)
        if errors:
            raise ImportRefused(str(path), f"{errors[0]}. Nothing was imported.")

    notes = _ENCODINGS[encoding], f"fields separated by {_DELIMITERS[delimiter]}"
    return _sheet(path, records, "line", notes)


def _encoding(path: Path) -> str:
    """The encoding of a text file: UTF-16 by its first bytes; UTF-8, though some lines are damaged,
    if most that aren't ASCII are that, or Windows has no letter for a byte.
    """
    with path.open("rb") as file:
        if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            return "utf-16"
        file.seek(0)
        good = bad = 0
        for line in iter(partial(file.readline, _MOST_LINE), b""):
            if len(line) == _MOST_LINE:
                reason = f"A line has more than {_MOST_LINE:,} bytes; is this a table?"
                raise ImportRefused(str(path), reason)
            if line.isascii():
                continue
            try:
                line.decode()
                good += 1
            except UnicodeDecodeError:
                bad += 1
                if any(one in line for one in b"\x81\x8d\x8f\x90\x9d"):
                    return "utf-8"
    return "cp1252" if bad and bad >= good else "utf-8"


def _delimiter(head: str) -> str:
    """What separates fields: that which gives the row with most names of fields, else the widest
    rows.
    """
    best, highest = ",", (False, 0, 0)
    lines = head.lstrip("\ufeff").splitlines(keepends=True)[: 2 * _TOP]
    for delimiter in _DELIMITERS:
        rows = [row for row in csv.reader(lines, delimiter=delimiter) if len(row) > 1]
        if rows:
            named = max((is_canonical(row), fields_named(row)) for row in rows[:_TOP])
            width, count = Counter(map(len, rows)).most_common(1)[0]
            if (*named, (width - 1) * count) > highest:
                best, highest = delimiter, (*named, (width - 1) * count)
    return best


def _workbook_sheets(path: Path) -> list[Sheet]:
    """The sheets of a spreadsheet, or the table of another file, written down by a process of its
    own.
    """
    if path.suffix.lower() in _SPREADSHEETS:
        try:
            check_unpacked(path, Bounds(most_files=10_000, most_size=_MOST_UNPACKED))
        except UnpackRefused as error:
            raise ImportRefused(str(path), f"The spreadsheet can't be read. {error}") from None
    folder = TemporaryDirectory(prefix="table-")  # which lives as long as the sheets do
    program = str(Path(__file__).with_name("workbook.py"))
    try:
        ended = subprocess.run(
            [sys.executable, "-P", program, str(path.resolve()), folder.name],
            capture_output=True, text=True, errors="replace", timeout=_MOST_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        reason = "Reading it takes too long. Save the sheet of the images as CSV."
        raise ImportRefused(str(path), reason) from None
    if ended.returncode:
        last = ended.stderr.strip().rpartition("\n")[2]
        reason = f"It can't be read: {last.partition(': ')[2][:200]}."
        if ended.returncode < 0 or any(one in last for one in ("MemoryError", "limit", "capacity")):
            reason = "It claims more cells than can be read."
        raise ImportRefused(str(path), f"{reason} Save the sheet of the images as CSV.")
    names = [json.loads(line) for line in ended.stdout.splitlines()]
    sheets = []
    for at, name in enumerate(names):

        def records(at: int = at) -> Iterator[Row]:
            with Path(folder.name, str(at)).open() as lines:
                yield from map(json.loads, lines)

        others = ", ".join(f"“{other}”" for other in names if other != name)[:200]
        notes = [f"sheet “{name}”"] * bool(name) + [f"not read: {others}"] * bool(others)
        unit = "line" if path.suffix.lower() == ".jsonl" else "row"
        sheets.append(_sheet(path, records, unit, notes))
    return sheets
