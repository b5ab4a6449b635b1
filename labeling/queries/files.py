"""Reader and writer of INQUIRE's query files.

The released files have the columns (unnamed), query_id, query_text, supercategory, category,
iconic_group. The unnamed column is the query's position, from 0, among all queries of the benchmark
(both splits) sorted by query_id.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, Protocol, TextIO

from core.csv_rows import RowError, csv_field
from core.text import has_controls
from labeling.queries.categories import CATEGORIES, ICONIC_GROUPS, SPLITS, SUPERCATEGORIES

REQUIRED_COLUMNS: Final = ("query_id", "query_text", "supercategory", "category", "iconic_group")
OPTIONAL_COLUMNS: Final = ("species", "guidelines", "scientific_terms", "split")
DEFAULT_SPLIT: Final = "test"
#: The largest id that PostgreSQL's integer holds.
MAX_QUERY_ID: Final = 2**31 - 1
#: Characters of a query's text, as the database keeps it.
MAX_TEXT_LENGTH: Final = 500

_BOOLEANS: Final = {
    **dict.fromkeys(("0", "false", "no"), False),
    **dict.fromkeys(("1", "true", "yes"), True),
}
#: What lays a text out in lines; a field in quotes may hold it.
_LAYOUT: Final = dict.fromkeys(map(ord, "\t\r\n"))
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One query of a file."""

    query_id: int
    query_text: str
    """Verbatim, with leading and trailing blanks."""
    supercategory: str
    category: str
    iconic_group: str
    """Empty where the file names none."""
    split: str
    species: tuple[str, ...] = ()
    """Scientific names of the species filter, in the file's order; empty means the whole corpus."""
    guidelines: str = ""
    scientific_terms: bool | None = None
    """None where the file doesn't say."""
    line: int = 0
    """The line of the file on which the row begins, from 1."""
    index: int = -1
    """What the unnamed column says; -1 without it, or where it holds no whole number."""


def split_of_name(name: str) -> str | None:
    """The split that a file's name ends in ("inquire_queries_val.csv" -> "val"); None if none."""
    stem = PurePath(name).stem.lower()
    return next((split for split in SPLITS if stem == split or stem.endswith(f"_{split}")), None)


def read_queries(
    lines: Iterable[str | bytes],
    *,
    name: str,
    default_split: str = DEFAULT_SPLIT,
    vocabulary: bool = True,
) -> tuple[list[QueryRow], list[RowError]]:
    """Read a query file: the rows that are right, and everything that is wrong.

    `lines` is an open file, best in binary mode (or an upload), so that bytes that are not UTF-8
    can be named by line. `name` is the file's name for messages; it also gives the split
    ("…_val.csv", "…_test.csv") unless a split column does; a name that says nothing means
    `default_split`. Without `vocabulary`, another benchmark's categories and groups are taken as
    they are, `iconic_group` may be missing, and columns that aren't known are passed over. A byte
    order mark and CRLF are understood. Query texts are kept verbatim, other fields are stripped.
    Never raises for what the file holds: callers refuse the file whole when there is any error.
    """
    reader = _Reader(name, split_of_name(name) or default_split, vocabulary)
    rows = list(reader.rows(lines))
    return rows, sorted(reader.errors, key=lambda error: error.line)


class _Reader:
    """One pass over a file: the errors so far, the ids seen, the lines that don't decode."""

    def __init__(self, name: str, split: str, vocabulary: bool) -> None:
        self.name = name
        self.split = split
        self.vocabulary = vocabulary
        self.errors: list[RowError] = []
        self.first_lines: dict[int, int] = {}
        self.undecodable: set[int] = set()

    def error(self, line: int, field: str, message: str) -> None:
        self.errors.append(RowError(self.name, line, field, message))

    def rows(self, lines: Iterable[str | bytes]) -> Iterator[QueryRow]:
        records = self._records(lines)
        header = next(records, None)
        if self.errors:
            # The header itself can't be read, so nothing says what the lines after it are.
            return
        if header is None:
            self.error(1, "", "the file is empty; a header line with the columns is needed")
            return
        line, names = header
        columns = [column.strip() for column in names]
        if not self._header_is_right(line, columns):
            return
        for line, fields in records:
            if len(fields) != len(columns):
                self.error(
                    line,
                    "",
                    f"{len(fields)} fields where the header has {len(columns)}; "
                    "a field with a comma must stand in quotes",
                )
                continue
            row = self._row(line, dict(zip(columns, fields, strict=True)))
            if row is not None:
                yield row

    def _text(self, lines: Iterable[str | bytes]) -> Iterator[str]:
        """Lines as text without the byte order mark; remembers those that are not UTF-8."""
        number = 0
        source = iter(lines)
        while True:
            number += 1
            try:
                line = next(source)
            except StopIteration:
                return
            except UnicodeDecodeError:
                self.error(number, "", "not UTF-8 text from about this line on; save it as UTF-8")
                return
            if number == 1 and isinstance(line, bytes) and line.startswith(_UTF16_MARKS):
                self.error(1, "", "the file is UTF-16; save it as UTF-8")
                return
            text = self._decoded(number, line)
            yield text.removeprefix("\ufeff") if number == 1 else text

    def _decoded(self, number: int, line: str | bytes) -> str:
        """The line's text; one that is not UTF-8 is named, and given with replacements."""
        # A text file opened with errors="surrogateescape" marks such bytes by surrogates.
        data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            self.undecodable.add(number)
            self.error(number, "", "not UTF-8 text; save the file as UTF-8")
            return data.decode("utf-8", errors="replace")

    def _records(self, lines: Iterable[str | bytes]) -> Iterator[tuple[int, list[str]]]:
        """(first line, fields) of each record that is neither blank nor broken."""
        # Strict, so that a quote that is never closed is an error instead of swallowing the rest.
        records = csv.reader(self._text(lines), strict=True)
        while True:
            first = records.line_num + 1
            try:
                fields = next(records)
            except StopIteration:
                return
            except csv.Error as error:
                self.error(first, "", f"not readable as CSV ({error}); check the quotes")
                continue
            if not fields or not self.undecodable.isdisjoint(range(first, records.line_num + 1)):
                continue
            if any("\0" in field for field in fields):
                self.error(first, "", "holds NUL bytes; is this a text file?")
                continue
            yield first, fields

    def _header_is_right(self, line: int, columns: list[str]) -> bool:
        before = len(self.errors)
        known = (*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS)
        for column in REQUIRED_COLUMNS:
            optional = column == "iconic_group" and not self.vocabulary
            if column not in columns and not optional:
                self.error(line, column, "the column is missing from the header")
        for column in sorted(name for name, count in Counter(columns).items() if count > 1):
            self.error(line, column or "(unnamed)", "the column stands twice in the header")
        for column in columns:
            if self.vocabulary and column and column not in known:
                self.error(line, column, f"unknown column; known are {', '.join(known)}")
        return len(self.errors) == before

    def _row(self, line: int, fields: Mapping[str, str]) -> QueryRow | None:
        before = len(self.errors)
        value = {column: field.strip() for column, field in fields.items()}
        for column, text in fields.items():
            if has_controls(text.translate(_LAYOUT)):
                self.error(line, column, f"holds control characters: {text[:60]!r}")
        query_id = self._query_id(line, value["query_id"])
        if not value["query_text"]:
            self.error(line, "query_text", "the text is blank")
        if (length := len(fields["query_text"])) > MAX_TEXT_LENGTH:
            message = f"{length} characters; at most {MAX_TEXT_LENGTH} can be kept"
            self.error(line, "query_text", message)
        if self.vocabulary:
            self._check_category(line, value["category"], value["supercategory"])
        else:
            self._check_named(line, value)
        group = value.get("iconic_group", "")
        if self.vocabulary and group and group not in ICONIC_GROUPS:
            self.error(
                line,
                "iconic_group",
                f"unknown iconic group {group!r}; known are {', '.join(ICONIC_GROUPS)}, or blank",
            )
        split = value.get("split", "") or self.split
        if split not in SPLITS:
            self.error(line, "split", f"unknown split {split!r}; known are {', '.join(SPLITS)}")
        terms = value.get("scientific_terms", "").lower()
        if terms and terms not in _BOOLEANS:
            self.error(line, "scientific_terms", "write true or false")
        if len(self.errors) > before or query_id is None:
            return None
        names = (name.strip() for name in value.get("species", "").split(";"))
        return QueryRow(
            query_id=query_id,
            query_text=fields["query_text"],
            supercategory=value["supercategory"],
            category=value["category"],
            iconic_group=group,
            split=split,
            species=tuple(dict.fromkeys(name for name in names if name)),
            guidelines=value.get("guidelines", ""),
            scientific_terms=_BOOLEANS.get(terms),
            line=line,
            index=_index(value.get("", "")),
        )

    def _check_named(self, line: int, value: Mapping[str, str]) -> None:
        for column in ("supercategory", "category"):
            if not value[column]:
                self.error(line, column, f"the {column} is blank")

    def _query_id(self, line: int, text: str) -> int | None:
        if not text:
            self.error(line, "query_id", "the id is missing")
            return None
        digits = text.lstrip("0") or "0"
        is_number = text.isascii() and text.isdigit()
        # The length first: int() itself refuses texts of thousands of digits.
        if not is_number or len(digits) > 10 or int(digits) > MAX_QUERY_ID:
            self.error(
                line, "query_id", f"{text[:40]!r} is not a whole number from 0 to {MAX_QUERY_ID}"
            )
            return None
        query_id = int(digits)
        if query_id in self.first_lines:
            self.error(
                line, "query_id", f"{query_id} stands already on line {self.first_lines[query_id]}"
            )
            return None
        self.first_lines[query_id] = line
        return query_id

    def _check_category(self, line: int, category: str, supercategory: str) -> None:
        parent = CATEGORIES.get(category)
        if parent is None:
            self.error(
                line,
                "category",
                f"unknown category {category!r}; known are {'; '.join(CATEGORIES)}",
            )
            if supercategory not in SUPERCATEGORIES:
                self.error(
                    line,
                    "supercategory",
                    f"unknown supercategory {supercategory!r}; "
                    f"known are {', '.join(SUPERCATEGORIES)}",
                )
        elif supercategory != parent:
            self.error(
                line, "supercategory", f"{supercategory!r}, but {category!r} belongs to {parent!r}"
            )


def _index(text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) < 19
    return int(text) if is_number else -1


class ExportedQuery(Protocol):
    """What the writer needs of a query; `QueryRow` is one."""

    @property
    def query_id(self) -> int: ...
    @property
    def query_text(self) -> str: ...
    @property
    def supercategory(self) -> str: ...
    @property
    def category(self) -> str: ...
    @property
    def iconic_group(self) -> str: ...
    @property
    def split(self) -> str: ...


def write_queries(
    rows: Iterable[ExportedQuery], files: Mapping[str, TextIO], *, indexes: Mapping[int, int]
) -> None:
    """Write queries as INQUIRE's release does, one file a split.

    `rows` are all queries of the release, of both splits; `files` holds an open file for each split
    (opened with newline="" and encoding="utf-8"). Rows stream, in their order. The bytes depend on
    the rows alone. `indexes` gives the unnamed column by query_id.

    ValueError: a split without a file.
    """
    header = ",".join(("", *REQUIRED_COLUMNS)) + "\n"
    for file in files.values():
        file.write(header)
    for row in rows:
        if row.split not in files:
            raise ValueError(f"query {row.query_id} has the split {row.split!r}, which has no file")
        fields = (row.query_text, row.supercategory, row.category, row.iconic_group)
        quoted = ",".join(csv_field(field) for field in fields)
        files[row.split].write(f"{indexes[row.query_id]},{row.query_id},{quoted}\n")
