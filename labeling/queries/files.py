"""Reader and writer of INQUIRE's query files.

The released files have the columns (unnamed), query_id, query_text, supercategory, category,
iconic_group. The unnamed column is the query's position, from 0, among all queries of the benchmark
(both splits) sorted by query_id.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final, TextIO

from core.csv_rows import RowError, csv_field, csv_rows
from core.ids import id_of
from core.text import has_controls
from labeling.queries.categories import CATEGORIES, ICONIC_GROUPS, SPLITS, SUPERCATEGORIES

REQUIRED_COLUMNS: Final = ("query_id", "query_text", "supercategory", "category", "iconic_group")
OPTIONAL_COLUMNS: Final = ("species", "guidelines", "scientific_terms", "split")
#: Of a file that names no split.
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
    columns: frozenset[str] = field(default=frozenset(), compare=False)
    """The columns that the file has."""


def split_of_name(name: str) -> str | None:
    """The split that a file's name ends in ("inquire_queries_val.csv" -> "val"); None if none."""
    stem = PurePath(name).stem.lower()
    return next((split for split in SPLITS if stem == split or stem.endswith(f"_{split}")), None)


def read_queries(
    lines: Iterable[str | bytes], *, name: str, vocabulary: bool = True
) -> tuple[list[QueryRow], list[RowError]]:
    """Read a query file: the rows that are right, and everything that is wrong.

    `lines` is an open file, best in binary mode (or an upload), so that bytes that are not UTF-8
    can be named by line. `name` is the file's name for messages; it also gives the split
    ("…_val.csv", "…_test.csv") unless a split column does; a name that says nothing means
    DEFAULT_SPLIT. Without `vocabulary`, another benchmark's categories and groups are taken as
    they are, `iconic_group` may be missing, and columns that aren't known are passed over. A byte
    order mark and CRLF are understood. Query texts are kept verbatim, other fields are stripped.
    Never raises for what the file holds: callers refuse the file whole when there is any error.
    """
    errors: list[RowError] = []
    rows: list[QueryRow] = []
    first_lines: dict[int, int] = {}
    required = REQUIRED_COLUMNS if vocabulary else REQUIRED_COLUMNS[:-1]
    for line, fields in csv_rows(
        lines,
        name=name,
        required=required,
        optional=REQUIRED_COLUMNS[len(required) :] + OPTIONAL_COLUMNS,
        errors=errors,
        others=not vocabulary,
    ):
        split = split_of_name(name) or DEFAULT_SPLIT
        row, problems = query_row(line, fields, split, vocabulary=vocabulary)
        if row.query_id >= 0:
            first = first_lines.setdefault(row.query_id, line)
            if first != line:
                problems.append(("query_id", f"{row.query_id} is already on line {first}"))
        errors += [RowError(name, line, column, message) for column, message in problems]
        if not problems:
            rows.append(row)
    return rows, sorted(errors, key=lambda error: error.line)


def query_row(
    line: int, fields: Mapping[str, str], split: str, *, vocabulary: bool = True
) -> tuple[QueryRow, list[tuple[str, str]]]:
    """The query of a record, with the (column, message) of each thing that is wrong with it.

    `split` is its split unless a field says otherwise. The query id is -1 where it can't be read.
    """
    problems: list[tuple[str, str]] = []
    for column, text in fields.items():
        if has_controls(text.translate(_LAYOUT)):
            problems.append((column, f"holds control characters: {text[:60]!r}"))
    value = {column: text.strip() for column, text in fields.items()}
    text = value["query_id"]
    query_id = id_of(text.lstrip("0") or text[-1:])
    if not text:
        problems.append(("query_id", "the id is missing"))
    elif query_id is None or query_id > MAX_QUERY_ID:
        query_id = None
        message = f"{text[:40]!r} is not a whole number from 0 to {MAX_QUERY_ID}"
        problems.append(("query_id", message))
    if not value["query_text"]:
        problems.append(("query_text", "the text is blank"))
    if (length := len(fields["query_text"])) > MAX_TEXT_LENGTH:
        message = f"{length} characters; at most {MAX_TEXT_LENGTH} can be stored"
        problems.append(("query_text", message))
    group = value.get("iconic_group", "")
    if vocabulary:
        problems += _category_problems(value["category"], value["supercategory"])
        if group and group not in ICONIC_GROUPS:
            known = f"known are {', '.join(ICONIC_GROUPS)}, or blank"
            problems.append(("iconic_group", f"unknown iconic group {group!r}; {known}"))
    else:
        blank = [column for column in ("supercategory", "category") if not value[column]]
        problems += [(column, f"the {column} is blank") for column in blank]
    split = value.get("split", "") or split
    if split not in SPLITS:
        problems.append(("split", f"unknown split {split!r}; known are {', '.join(SPLITS)}"))
    terms = value.get("scientific_terms", "").lower()
    if terms and terms not in _BOOLEANS:
        problems.append(("scientific_terms", "write true or false"))
    names = (name.strip() for name in value.get("species", "").split(";"))
    index = id_of(value.get("", ""))
    row = QueryRow(
        query_id=-1 if query_id is None else query_id,
        query_text=fields["query_text"],
        supercategory=value["supercategory"],
        category=value["category"],
        iconic_group=group,
        split=split,
        species=tuple(dict.fromkeys(name for name in names if name)),
        guidelines=value.get("guidelines", ""),
        scientific_terms=_BOOLEANS.get(terms),
        line=line,
        index=-1 if index is None else index,
        columns=frozenset(fields),
    )
    return row, problems


def _category_problems(category: str, supercategory: str) -> list[tuple[str, str]]:
    """What is wrong with a category and its supercategory in INQUIRE's vocabulary."""
    parent = CATEGORIES.get(category)
    if parent is not None:
        message = f"{supercategory!r}, but {category!r} belongs to {parent!r}"
        return [] if supercategory == parent else [("supercategory", message)]
    known = "; ".join(CATEGORIES)
    problems = [("category", f"unknown category {category!r}; known are {known}")]
    if supercategory not in SUPERCATEGORIES:
        known = ", ".join(SUPERCATEGORIES)
        message = f"unknown supercategory {supercategory!r}; known are {known}"
        problems.append(("supercategory", message))
    return problems


def write_queries(
    rows: Iterable[QueryRow], files: Mapping[str, TextIO], *, indexes: Mapping[int, int]
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
        quoted = ",".join(csv_field(text) for text in fields)
        files[row.split].write(f"{indexes[row.query_id]},{row.query_id},{quoted}\n")
