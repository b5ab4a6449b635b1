"""What the columns of a table stand for: chosen by a person, or guessed and then shown."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from retrieval.importing.cells import DATE, TEXT, ColumnValues
from retrieval.importing.choices import ImportChoices
from retrieval.importing.file_index import FileIndex, is_address
from retrieval.importing.headers import FIELDS, field_of, is_canonical, is_private

MOST_CUSTOM_FIELDS: Final = 100
_LONGEST_NAME: Final = 100
#: Rows of the table that a person sees.
MOST_SHOWN: Final = 5


@dataclass(slots=True)
class Column:
    """A column and what it stands for: a field, else a custom field of a kind, else nothing."""

    header: str
    field: str = ""
    kind: str = ""
    private: bool = False
    chosen: bool = False
    note: str = ""
    """How its values were read, or why it isn't used, for people."""
    shown: list[str] = dataclasses.field(default_factory=list)
    """Its first values."""
    values: ColumnValues = dataclasses.field(default_factory=ColumnValues)


@dataclass(frozen=True, slots=True)
class Question:
    """What only a person can say; until then nothing is imported."""

    about: str
    """`file_name` or another field that two columns may be, or `day_first`."""
    text: str


def guess_fields(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], files: FileIndex
) -> list[Question]:
    """Give columns that weren't chosen their fields, by their headers, and the column of the files
    also by its values in these first rows; returns what stays open.
    """
    taken = {column.field for column in columns if column.chosen and column.field}
    free = [column for column in columns if not column.chosen]
    old = is_canonical(column.header for column in columns)
    candidates = defaultdict[str, list[tuple[int, Column]]](list)
    for column in free:
        name, rank = field_of(column.header)
        # Tables that could be imported earlier had no time apart, and are read as they were.
        if name and name not in taken and not (name == "time" and old):
            candidates[name].append((rank, column))
    if not taken & {"latitude", "coordinates"} and not candidates.keys() & {
        "latitude",
        "coordinates",
    }:
        # “accuracy” alone may be anything's.
        candidates.pop("location_uncertainty", None)
    questions = [
        Question(name, f"{_quoted(same)} are all read as “{FIELDS[name].label}”. Which one is it?")
        for name in taken
        if len(same := [column for column in columns if column.field == name]) > 1
    ]
    if "file_name" not in taken:
        file_column = _file_column(columns, rows, files, candidates.pop("file_name", []))
        if isinstance(file_column, Column):
            file_column.field = "file_name"
        else:
            questions.append(file_column)
    for name, ranked in candidates.items():
        best = min(rank for rank, _ in ranked)
        first = [column for rank, column in ranked if rank == best and not column.field]
        if len(first) == 1:
            first[0].field = name
        elif first:
            text = f"Which column is the {FIELDS[name].label.lower()}: {_quoted(first)}?"
            questions.append(Question(name, text))
            for column in first:
                column.note = f"may be the {FIELDS[name].label.lower()}"
    return questions


def _quoted(columns: Sequence[Column]) -> str:
    return " and ".join(f"“{column.header}”" for column in columns)


def _file_column(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    files: FileIndex,
    named: Sequence[tuple[int, Column]],
) -> Column | Question:
    """The column that names the images' files: that of the best header; where it is vague or isn't
    the only one, that whose values are files.
    """
    best = min((rank for rank, _ in named), default=9)
    first = [column for rank, column in named if rank == best]
    if best < 2 and len(first) == 1:
        return first[0]
    found = {}
    for at, column in enumerate(columns):
        cells = [row[at] for row in rows if row[at].strip()]
        share = sum(1 for cell in cells if files.found(cell)) / max(1, len(cells))
        if share >= 0.5 and not column.chosen:
            # Of equal ones that of a header that says so.
            found[at] = (share, column in first, -at)
    if found:
        return columns[max(found, key=found.__getitem__)]
    if len(first) == 1:
        return first[0]
    if first:
        return Question("file_name", f"Which column names the images' files: {_quoted(first)}?")
    return Question(
        "file_name", "Which column names the images' files? No header says so, and no column has "
        "the names of files that are here.",
    )  # fmt: skip


def addresses_in(columns: Sequence[Column], rows: Sequence[Sequence[str]], files: FileIndex) -> str:
    """The header of a column that holds web addresses of images where the table has no files: the
    column of the files, or any where none names files. Else an empty text.
    """
    chosen = [column for column in columns if column.field == "file_name"]
    for at, column in enumerate(columns):
        if column in (chosen or columns):
            cells = [row[at] for row in rows if row[at].strip()]
            if cells and all(map(is_address, cells)) and not any(map(files.found, cells)):
                return column.header
    return ""


def choose_columns(headers: Sequence[str], choices: ImportChoices) -> list[Column]:
    """The columns with what was chosen of them."""
    return [
        Column(
            header,
            field=choices.columns.get(header, ""),
            kind=choices.custom_fields.get(header, ""),
            chosen=header in choices.columns or header in choices.custom_fields,
        )
        for header in headers
    ]


def guess_kinds(
    columns: Sequence[Column], known: Mapping[str, str], day_first: bool | None
) -> None:
    """Give columns that are no field a kind by their values, unless they are private or too many;
    `known` are the kinds of the custom fields that there are, which stay. Dates whose order of day
    and month isn't known stay texts.
    """
    kept = sum(1 for column in columns if column.kind)
    for column in columns:
        column.private = is_private(column.header) or column.values.emails > 0
        if column.field or (column.chosen and not column.kind):
            continue
        if not column.values.filled:
            column.kind, column.note = "", "No value"
        elif len(column.header) > _LONGEST_NAME:
            column.kind, column.note = "", f"Its name has more than {_LONGEST_NAME} letters"
        elif not column.chosen:
            if column.private:
                column.note = column.note or "May be private"
            elif kept >= MOST_CUSTOM_FIELDS:
                column.note = f"At most {MOST_CUSTOM_FIELDS} columns are kept"
            else:
                column.kind = column.values.kind
                kept += 1
                is_open = column.values.open_dates and len(column.values.day_first) != 1
                if column.kind == DATE and is_open and day_first is None:
                    column.kind, column.note = TEXT, "Its dates can be read both ways"
        if column.kind and known.get(column.header, column.kind) != column.kind:
            column.kind = known[column.header]
            column.note = "The field of this name is of this kind already"
