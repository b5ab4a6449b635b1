"""What the columns of a table stand for: chosen by a person, or guessed and then shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from retrieval.importing.cells import DATE, TEXT, ColumnValues
from retrieval.importing.choices import ImportChoices
from retrieval.importing.headers import FIELDS, field_of, is_canonical, is_private
from retrieval.importing.table_choice import FileIndex

MOST_CUSTOM_FIELDS: Final = 100
_LONGEST_NAME: Final = 100


@dataclass(slots=True, eq=False)
class Column:
    """A column and what it stands for: a field, else a custom field of a kind, else nothing."""

    header: str
    field: str = ""
    kind: str = ""
    private: bool = False
    chosen: bool = False
    day_first: bool | None = None
    """The order of day and month in its dates: as they show it, else as chosen."""
    note: str = ""
    """How its values were read, or why it isn't used, for people."""
    sample: list[str] = dataclasses.field(default_factory=list)
    """Its first values."""
    values: ColumnValues = dataclasses.field(default_factory=ColumnValues)

    @property
    def used(self) -> str:
        """What it is used as, for people; empty where it isn't."""
        return self.field or (f"kept as {self.kind}" if self.kind else "")


@dataclass(frozen=True, slots=True)
class Question:
    """What only a person can say; until then nothing is imported."""

    about: str
    """`file_name` or another field that two columns may be, or `day_first`."""
    text: str


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


def guess_fields(columns: Sequence[Column], files: FileIndex) -> list[Question]:
    """Give columns that weren't chosen their fields, by their headers, and that of the files also
    by its first values; returns what stays open.
    """
    free = [(*field_of(column.header), column) for column in columns if not column.chosen]
    passed = {column.field for column in columns}
    if is_canonical(column.header for column in columns):
        # Tables that could be imported earlier had no time apart, and are read as they were.
        passed.add("time")
    if "latitude" not in passed | {name for name, _, _ in free}:
        # “accuracy” alone may be anything's.
        passed.add("location_uncertainty")
    # The column of the files comes first.
    for name in (one for one in FIELDS if one not in passed):
        ranked = [(rank, one) for field, rank, one in free if field == name and not one.field]
        best = min((rank for rank, _ in ranked), default=2)
        first = [column for rank, column in ranked if rank == best]
        if name == "file_name" and (best == 2 or len(first) > 1):
            first = _naming_files([column for *_, column in free], first, files) or first
        for column in first:
            column.field = name
    questions = []
    for name, field in FIELDS.items():
        same = [column.header for column in columns if column.field == name]
        if len(same) > 1:
            quoted = " and ".join(f"“{header}”" for header in same)
            question = f"{quoted} are all read as “{field.label}”. Which one is it?"
            questions.append(Question(name, question))
        elif name == "file_name" and not same:
            question = "Which column names the images' files? No header says so, and no column "
            questions.append(Question(name, question + "has the names of files that are here."))
    return questions


def _naming_files(
    columns: Sequence[Column], named: Sequence[Column], files: FileIndex
) -> list[Column]:
    """The column whose values are files, if one's are: of equal ones that which is `named` so."""
    shares = [(files.share(column.sample), column in named, column) for column in columns]
    share, _, best = max(shares, key=lambda one: one[:2], default=(0.0, False, None))
    return [best] if best and share >= 0.5 else []


def addresses_in(columns: Sequence[Column], files: FileIndex) -> str:
    """The header of a column that holds web addresses of images where the table has no files: the
    column of the files, or any where none names files. Else an empty text.
    """
    named = [column for column in columns if column.field == "file_name"]
    for column in named or columns:
        filled = [cell.strip().lower() for cell in column.sample if cell.strip()]
        are_addresses = filled and all(cell.startswith(("http://", "https://")) for cell in filled)
        if are_addresses and not files.share(column.sample):
            return column.header
    return ""


def guess_kinds(
    columns: Sequence[Column], known: Mapping[str, str], day_first: bool | None
) -> None:
    """Give columns that are no field a kind by their values, unless they are private or too many;
    `known` are the kinds of the custom fields that there are, which stay. Dates whose order of day
    and month isn't known stay texts.
    """
    kept = sum(1 for column in columns if column.kind)
    for column in columns:
        values = column.values
        column.private = (
            is_private(column.header, of_texts=values.kind == TEXT) or values.emails > 0
        )
        if column.field or (column.chosen and not column.kind):
            continue
        if not values.filled:
            column.kind, column.note = "", "No value"
        elif len(column.header) > _LONGEST_NAME:
            column.kind, column.note = "", f"Its name has more than {_LONGEST_NAME} letters"
        elif column.private and not column.chosen:
            column.note = "May be private"
        elif kept >= MOST_CUSTOM_FIELDS and not column.chosen:
            column.note = f"At most {MOST_CUSTOM_FIELDS} columns are kept"
        elif not column.chosen:
            kept += 1
            column.kind = values.kind
            is_open = values.open_dates and values.order is None and day_first is None
            if values.kind == DATE and is_open:
                column.kind, column.note = TEXT, "Its dates can be read both ways"
        if column.kind and known.get(column.header, column.kind) != column.kind:
            column.kind = known[column.header]
            column.note = "The field of this name is of this kind already"
