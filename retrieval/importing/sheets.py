"""Tables in whatever files people keep them: a header, and rows of texts with their numbers."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any, Final

from core.csv_rows import RowError, csv_records
from core.text import printable
from core.unpacking import Bounds, UnpackRefused, check_unpacked
from retrieval.importing.headers import fields_named, is_canonical, unnamed
from retrieval.importing.records import ImportRefused

TEXTS: Final = (".csv", ".tsv", ".txt")
SPREADSHEETS: Final = (".xlsx", ".ods")
SUFFIXES: Final = (*TEXTS, *SPREADSHEETS, ".jsonl", ".parquet")

#: Columns of a table; further ones aren't read.
MOST_COLUMNS: Final = 1000
#: Rows at the top among which the header is.
_TOP: Final = 20
#: Bytes of a line; of a text's beginning that is looked at.
_MOST_LINE: Final = 1 << 26
_HEAD: Final = 1 << 16
_DELIMITERS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_ENCODINGS: Final = {
    "utf-8-sig": "UTF-8",
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "cp1252": "Windows-1252",
}
#: Bytes that come out of a spreadsheet's archive, and seconds that reading it takes.
_MOST_UNPACKED: Final = 1 << 30
_MOST_SECONDS: Final = 600

Row = tuple[int, list[str]]
Broken = Callable[[int, str], None]
"""Takes the number of a row that can't be read, and the reason."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table, or one of a workbook's sheets. Memory doesn't grow with its rows."""

    path: Path
    name: str
    """The sheet's; empty in a file that has no sheets."""
    hidden: bool
    notes: tuple[str, ...]
    """How the file was read, for people."""
    header: tuple[str, ...]
    """A name for each column, all different."""
    unit: str
    """What the numbers of rows count: `line` or `row`."""
    _header_at: int
    _records: Callable[[Broken], Iterator[Row]]

    def without_header(self) -> Sheet:
        """The same table, whose header is a row like the others."""
        header = tuple(unnamed(number) for number in range(1, len(self.header) + 1))
        return replace(self, header=header, _header_at=self._header_at - 1)

    def rows(self, broken: Broken = lambda number, reason: None) -> Iterator[Row]:
        """(number, cells) of each row below the header that isn't blank."""
        width = len(self.header)
        for number, cells in self._records(broken):
            if number <= self._header_at:
                continue
            if len(cells) < width:
                broken(number, f"has {len(cells)} fields where the header has {width}")
            elif any(map(str.strip, cells[width:])) and width < MOST_COLUMNS:
                reason = f"has {len(cells)} fields where the header has {width}; a field that "
                broken(number, f"{reason}holds what separates fields must stand in quotes")
            else:
                yield number, cells[:width]


def open_sheets(path: Path) -> list[Sheet]:
    """The sheets of a file that have a header; raises ImportRefused for one that can't be read."""
    suffix = path.suffix.lower()
    if suffix in TEXTS:
        return [_text_sheet(path)]
    if suffix == ".jsonl":
        return [_json_lines_sheet(path)]
    return _workbook_sheets(path)


def _sheet(
    path: Path,
    records: Callable[[Broken], Iterator[Row]],
    unit: str,
    notes: Sequence[str],
    name: str = "",
    *,
    hidden: bool = False,
) -> Sheet:
    """The table whose header is, of the first records that are at least half as full as the
    fullest, the one that names most fields; titles above it are passed over.
    """
    top = list(islice(records(lambda number, reason: None), _TOP))
    full = [sum(1 for cell in cells if cell.strip()) for _, cells in top]
    at = next((n for n, (_, cells) in enumerate(top) if is_canonical(cells)), None)
    if at is None:
        most = max(full, default=0)
        wide = [n for n, count in enumerate(full) if 2 * count >= most]
        at = max(wide, key=lambda n: fields_named(top[n][1]), default=None)
    if at is None:
        return Sheet(path, name, hidden, tuple(notes), (), unit, 0, records)
    number, cells = top[at]
    header = _distinct(cells[:MOST_COLUMNS])
    return Sheet(path, name, hidden, tuple(notes), header, unit, number, records)


def _distinct(cells: Sequence[str]) -> tuple[str, ...]:
    """Names of columns, of which none is blank or stands twice."""
    seen = Counter[str]()
    names = []
    for at, cell in enumerate(cells, start=1):
        name = printable(" ".join(cell.split()))[:200] or unnamed(at)
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(names)


def _text_sheet(path: Path) -> Sheet:
    encoding = _encoding(path)
    with _opened(path, encoding) as file:
        head = file.read(_HEAD)
    if not head.strip():
        raise ImportRefused(str(path), "The table is empty.")
    delimiter = _delimiter(head.decode("utf-8", "replace") if isinstance(head, bytes) else head)

    def records(broken: Broken) -> Iterator[Row]:
        errors: list[RowError] = []
        with _opened(path, encoding) as lines:
            yield from csv_records(lines, name=path.name, errors=errors, delimiter=delimiter)
        if errors:
            raise ImportRefused(str(path), f"{errors[0]}. Nothing was imported.")

    notes = _ENCODINGS.get(encoding, "UTF-8"), f"fields separated by {_DELIMITERS[delimiter]}"
    return _sheet(path, records, "line", notes)


def _opened(path: Path, encoding: str) -> IO[Any]:
    """The file as text; as bytes, whose faults the reader names by line, where it is meant to be
    UTF-8 and isn't throughout.
    """
    return path.open(encoding=encoding, newline="") if encoding else path.open("rb")


def _encoding(path: Path) -> str:
    """The encoding of a text file; empty for UTF-8 in which some lines are damaged."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            return "utf-16"
        zeros = [head[at::2].count(0) for at in (0, 1)]
        if sum(zeros) * 5 > len(head) and min(zeros) * 10 < max(zeros):
            return "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
        file.seek(0)
        good = bad = undefined = 0
        for line in iter(partial(file.readline, _MOST_LINE), b""):
            if len(line) == _MOST_LINE:
                raise ImportRefused(
                    str(path), f"A line has more than {_MOST_LINE:,} bytes; is this a table?"
                )
            if line.isascii():
                continue
            try:
                line.decode("utf-8")
                good += 1
            except UnicodeDecodeError:
                bad += 1
                undefined += any(one in line for one in b"\x81\x8d\x8f\x90\x9d")
    if not bad:
        return "utf-8-sig"
    return "" if good > bad or undefined else "cp1252"


def _delimiter(head: str) -> str:
    """What separates fields: that which gives the names of old, else the header with most names of
    fields, else the widest one that most of the first rows agree with.
    """
    best, highest = ",", (0, 0.0)
    for delimiter in _DELIMITERS:
        rows = csv.reader(head.splitlines(keepends=True)[:200], delimiter=delimiter)
        try:
            top = [row for row in islice(rows, 2 * _TOP) if any(map(str.strip, row))]
        except csv.Error:
            continue
        if top and is_canonical(top[0]):
            return delimiter
        widths = Counter(len(row) for row in top if len(row) > 1)
        if widths:
            width, count = max(widths.items(), key=lambda one: (one[0] - 1) * one[1])
            score = max(map(fields_named, top[:_TOP])), (width - 1) * count / len(top)
            if score > highest:
                best, highest = delimiter, score
    return best


def _json_lines_sheet(path: Path) -> Sheet:
    """A table of objects, one a line; its columns are all keys that occur."""

    def objects(broken: Broken) -> Iterator[tuple[int, dict[str, Any]]]:
        with path.open("rb") as file:
            lines = iter(partial(file.readline, _MOST_LINE), b"")
            for number, line in enumerate(lines, start=1):
                try:
                    read = json.loads(line) if line.strip() else {}
                except (ValueError, RecursionError):
                    broken(number, "isn't valid JSON")
                    continue
                if isinstance(read, dict):
                    yield number, read
                else:
                    broken(number, "isn't a JSON object with a value for each column")

    keys: dict[str, None] = {}
    for _, one in objects(lambda number, reason: None):
        keys |= dict.fromkeys(one)
        if len(keys) > MOST_COLUMNS:
            raise ImportRefused(str(path), f"It has more than {MOST_COLUMNS:,} columns.")
    if not keys:
        raise ImportRefused(str(path), "The table is empty: no line is a JSON object.")

    def records(broken: Broken) -> Iterator[Row]:
        yield 0, list(keys)
        for number, one in objects(broken):
            if cells := [_json_text(one.get(key)) for key in keys]:
                yield number, cells

    return _sheet(path, records, "line", ["JSON lines"])


def _json_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, float):
        # Three decimals alone could be read as thousands.
        text = repr(value)
        return f"{text}0" if text[-4:-3] == "." else text
    return json.dumps(value, ensure_ascii=False)


def _workbook_sheets(path: Path) -> list[Sheet]:
    """The sheets of a spreadsheet, or the table of a Parquet file, written down by a process of
    its own.
    """
    if path.suffix.lower() in SPREADSHEETS:
        bounds = Bounds(most_files=10_000, most_size=_MOST_UNPACKED)
        try:
            check_unpacked(path, bounds)
        except UnpackRefused as error:
            raise ImportRefused(str(path), f"The spreadsheet can't be read. {error}") from None
    rows = NamedTemporaryFile(prefix="table-", suffix=".jsonl")  # noqa: SIM115  # lives as the sheets do
    program = Path(__file__).with_name("workbook.py")
    command = [sys.executable, "-P", str(program), str(path.resolve())]
    try:
        ended = subprocess.run(
            command, stdout=rows, stderr=subprocess.PIPE, timeout=_MOST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        reason = "Reading it takes too long. Save the sheet of the images as CSV."
        raise ImportRefused(str(path), reason) from None
    if ended.returncode:
        raise ImportRefused(str(path), _why(ended))
    sheets, beginnings = [], _beginnings(rows.name)
    for at, about in beginnings:

        def records(broken: Broken, at: int = at) -> Iterator[Row]:
            with open(rows.name, "rb") as lines:
                lines.seek(at)
                for line in lines:
                    if line.startswith(b"{"):
                        return
                    number, cells = json.loads(line)
                    yield number, cells

        others = ", ".join(f"“{other['sheet']}”" for _, other in beginnings if other != about)
        notes = [f"sheet “{about['sheet']}”"] if about["sheet"] else []
        notes += [f"not read: {others[:200]}"] if others else []
        sheet = _sheet(path, records, "row", notes, about["sheet"], hidden=about["hidden"])
        if sheet.header:
            sheets.append(sheet)
    if not sheets:
        raise ImportRefused(str(path), "The table is empty.")
    return sheets


def _beginnings(name: str) -> list[tuple[int, dict[str, Any]]]:
    """Where each sheet's rows begin, and what the sheet is."""
    found = []
    with open(name, "rb") as lines:
        at = 0
        for line in lines:
            at += len(line)
            if line.startswith(b"{"):
                found.append((at, json.loads(line)))
    return found


def _why(ended: subprocess.CompletedProcess[bytes]) -> str:
    """Why a spreadsheet wasn't read, in words."""
    said = ended.stderr.decode(errors="replace").strip().splitlines()
    last = said[-1] if said else ""
    if "PasswordError" in last or "password" in last.lower():
        return "It is protected by a password. Save it without one."
    if ended.returncode < 0 or any(word in last for word in ("MemoryError", "limit", "capacity")):
        return "It claims more cells than can be read. Save the sheet of the images as CSV."
    kind, _, message = last.partition(": ")
    return f"It can't be read: {(message or kind)[:200]}. Save the sheet of the images as CSV."
