"""A table of images in whatever file people keep it: one row an image, its file below the table's
folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace as replaced
from datetime import datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final

from core.text import printable
from retrieval.corpus.models import CustomField
from retrieval.importing import fields
from retrieval.importing.cells import (
    coordinate_of,
    custom_value,
    is_nothing,
    iso_date,
    number_of,
    split_coordinates,
)
from retrieval.importing.choices import ImportChoices
from retrieval.importing.columns import (
    MOST_SHOWN,
    Column,
    Question,
    addresses_in,
    choose_columns,
    guess_fields,
    guess_kinds,
)
from retrieval.importing.file_index import FileIndex
from retrieval.importing.headers import header_unit, is_unnamed, language_of
from retrieval.importing.known_names import known_names
from retrieval.importing.locations import location_of
from retrieval.importing.records import (
    CustomValue,
    ImageRecord,
    ImportRefused,
    RecordRefused,
    Refusal,
    SpeciesRecord,
)
from retrieval.importing.sheets import Sheet
from retrieval.importing.species_names import Taxon, taxon_of
from retrieval.importing.table_choice import Part, parts_of

_SAMPLE: Final = 50
#: Fields whose numbers are lengths in meters.
_LENGTHS: Final = ("location_uncertainty", "elevation")
_AXES: Final = {"latitude": ("N", "S"), "longitude": ("E", "W")}
#: Names of taxa that are read once.
_MOST_TAXA: Final = 10_000


class TableSource:
    """Reads tables; several are those of the folders of splits, and are read as one.

    Rows that can't be used are refused by line; of others licenses, rights holders, dates, places,
    elevations and observers that are wrong are left out. A taxon that is no species stays a text.
    `questions` is what a person has to say before anything is imported. Raises ImportRefused for
    a table whose text can't be read, or that names web addresses.
    """

    def __init__(
        self, path: Path, refuse: Callable[[Refusal], None], choices: ImportChoices
    ) -> None:
        self.path = path
        self.root = path if path.is_dir() else path.parent
        self._parts = parts_of(path)
        self._refuse = refuse
        self._choices = choices
        self._files = {part.folder: FileIndex(self.root / part.folder) for part in self._parts}
        headers = dict.fromkeys(header for part in self._parts for header in part.sheet.header)
        self.columns = choose_columns(list(headers), choices)
        self.questions = self._guess()
        self._by_field = {column.field: column for column in self.columns if column.field}
        self._custom = [column for column in self.columns if column.kind and not column.field]
        self._count = self._row_count = 0
        self._species: dict[str, SpeciesRecord] = {}
        self._taxa: dict[str, Taxon] = {}
        self._known_names = known_names(by_form=True)
        self._look_through()

    @property
    def highest_id(self) -> int:
        """The highest preferred id: -1, since images of tables have none."""
        return -1

    def default_dataset(self) -> str:
        """Return the table's folder and name, such as `park/photos`, or the folder of splits."""
        path = self.path.resolve()
        return path.name if path.is_dir() else f"{path.parent.name}/{path.stem}"

    def species(self) -> list[SpeciesRecord]:
        """Return the species of the rows."""
        return list(self._species.values())

    def count(self) -> int:
        """Count the images of the rows, of which those of an observation's id may have several."""
        return self._count

    @property
    def headers(self) -> dict[str, str]:
        """The headers of columns by their fields."""
        return {name: column.header for name, column in self._by_field.items()}

    @property
    def unused(self) -> list[str]:
        """The headers of columns with values that are neither read nor kept."""
        return [
            column.header
            for column in self.columns
            if not column.field and not column.kind and column.values.filled
        ]

    @property
    def used(self) -> list[str]:
        """What the other columns are read as, for people: `Datum → date`."""
        return [
            f"{one.header} → {one.field or f'kept as {one.kind}'}"
            + (f" ({one.note})" * bool(one.note))
            for one in self.columns
            if one.field or one.kind
        ]

    @property
    def custom_fields(self) -> dict[str, str]:
        """The kinds of the custom fields by their names."""
        return {column.header: column.kind for column in self._custom}

    @property
    def choices(self) -> ImportChoices:
        """The choices that read the table as it is read now, whatever is guessed later."""
        return replaced(
            self._choices,
            columns={one.header: one.field for one in self.columns if not one.kind or one.field},
            custom_fields=self.custom_fields,
        )

    def described(self) -> dict[str, Any]:
        """What a person is shown of how the table is read."""
        return {
            "names": [(f"{one.folder}/" if one.folder else "") + one.sheet.path.name
                      for one in self._parts],
            "notes": list(dict.fromkeys(note for one in self._parts for note in one.sheet.notes)),
            "rows": self._row_count,
            "columns": [
                {
                    "header": one.header, "values": one.shown, "field": one.field,
                    "kind": one.kind or one.values.kind, "kept": bool(one.kind),
                    "private": one.private, "note": one.note, "filled": one.values.filled,
                }
                for one in self.columns
            ],
            "questions": [{"about": one.about, "text": one.text} for one in self.questions],
            "day_first": self._choices.day_first,
            "unused": self.unused,
        }  # fmt: skip

    def images(self) -> Iterator[ImageRecord]:
        """Yield the valid images in the table's order."""
        if "file_name" not in self._by_field:
            return
        seen: set[str] = set()
        for part, number, row in self._rows(self._refuse_row):
            place = f"{part.sheet.unit} {number}"
            file = str(part.sheet.path)
            try:
                cell = self._cell(row, "file_name")
                fields.path({"file_name": cell}, "file_name")
                found = self._files[part.folder].found(cell) or [cell]
                record = self._image(row, place, file)
                for name in found:
                    below = f"{part.folder}/{name}" if part.folder else name
                    # The id is the clean name, as it was when names had to be paths as they are.
                    own_id = fields.text({"file_name": below}, "file_name", limit=500)
                    if own_id in seen:
                        raise RecordRefused("file_name", "an earlier row has the same file")
                    seen.add(own_id)
                    yield record._replace(source_id=own_id, file_name=below, folder=part.folder)
            except RecordRefused as error:
                self._refuse_by_header(Refusal(file, place, error.field, error.reason))

    def _guess(self) -> list[Question]:
        """Give the columns their fields, from the first rows."""
        sample = []
        for _, _, row in islice(self._rows(), _SAMPLE):
            sample.append([row.get(column.header, "") for column in self.columns])
        for column, *cells in zip(self.columns, *sample[:MOST_SHOWN], strict=True):
            column.shown = [printable(cell[:100]) for cell in cells]
        files = self._files[self._parts[0].folder]
        questions = guess_fields(self.columns, sample, files)
        if header := addresses_in(self.columns, sample, files):
            named = any(column.field == "file_name" for column in self.columns)
            if not named or next(c for c in self.columns if c.header == header).field:
                raise ImportRefused(
                    str(self.path),
                    f"Its column “{header}” holds web addresses, and no file of an image is "
                    "named. Images aren't fetched here: put them beside the table, with the id of "
                    "the observation or photo in their names, or have `curate` make a corpus of "
                    "iNaturalist's or GBIF's archives (docs/curation.md).",
                )
        return questions

    def _look_through(self) -> None:
        """Read all rows once: count them, note their species, and how their values are written."""
        for part, _, row in self._rows(self._count_broken):
            self._row_count += 1
            self._count += self._files[part.folder].count(self._cell(row, "file_name"))
            for column in self.columns:
                column.values.add(row.get(column.header, ""))
            names = (_clean(self._cell(row, name)) for name in ("scientific_name", "common_name"))
            self._taxon(*names)
        # Spreadsheets write columns on that nobody has filled.
        self.columns = [
            one for one in self.columns if one.values.filled or not is_unnamed(one.header)
        ]
        known = CustomField.objects.filter(name__in=[one.header for one in self.columns])
        kinds = dict(known.values_list("name", "kind"))
        guess_kinds(self.columns, kinds, self._choices.day_first)
        self._custom = [column for column in self.columns if column.kind and not column.field]
        dates = [self._by_field["date"]] if "date" in self._by_field else []
        dates += [column for column in self._custom if column.kind == "date"]
        for column in dates:
            self._note_order(column)

    def _count_broken(self, sheet: Sheet, number: int, reason: str) -> None:
        self._row_count += 1
        self._count += 1

    def _note_order(self, column: Column) -> None:
        """Say which order of day and month the dates of a column have, or ask."""
        values = column.values
        order = self._day_first(column)
        said = {True: "the day comes first", False: "the month comes first"}
        if len(values.day_first) == 2:
            column.note = "Some dates begin with the day, others with the month"
        elif values.day_first and order is not None:
            column.note = f"In dates {said[order]}, as some show"
        elif values.open_dates and order is not None:
            column.note = f"In dates {said[order]}, as chosen"
        if values.open_dates and order is None:
            self.questions.append(
                Question(
                    "day_first",
                    f"What comes first in “{column.header}”, the day or the month? "
                    f"{values.open_dates:,} of its dates, such as {values.an_open_date}, "
                    "can be read both ways.",
                )
            )

    def _day_first(self, column: Column) -> bool | None:
        """The order of day and month in a column, where its dates show it, else as it is chosen."""
        shown = column.values.day_first
        return next(iter(shown)) if len(shown) == 1 else self._choices.day_first

    @cached_property
    def _open_marks(self) -> str:
        """Marks that may stand before decimals or thousands where a column doesn't show it: points
        too, where other columns have decimal commas.
        """
        numeric = {"latitude", "longitude", *_LENGTHS}
        commas = any(
            "," in column.values.decimal_marks
            for column in self.columns
            if column.field in numeric or column.kind == "number"
        )
        return ",." if commas else ","

    def _rows(
        self, broken: Callable[[Sheet, int, str], None] = lambda sheet, number, reason: None
    ) -> Iterator[tuple[Part, int, dict[str, str]]]:
        for part in self._parts:
            sheet = part.sheet

            def on_broken(number: int, reason: str, sheet: Sheet = sheet) -> None:
                broken(sheet, number, reason)

            for number, cells in sheet.rows(on_broken):
                yield part, number, dict(zip(sheet.header, cells, strict=False))

    def _refuse_row(self, sheet: Sheet, number: int, reason: str) -> None:
        self._refuse(Refusal(str(sheet.path), f"{sheet.unit} {number}", "", reason))

    def _refuse_by_header(self, refusal: Refusal) -> None:
        """Refuse with the header of the column in place of its field."""
        column = self._by_field.get(refusal.field)
        self._refuse(replaced(refusal, field=column.header) if column else refusal)

    def _cell(self, row: Mapping[str, str], name: str) -> str:
        column = self._by_field.get(name)
        return row.get(column.header, "") if column else ""

    def _taxon(self, scientific: str, common: str) -> Taxon:
        """What a row says of its taxon, by its common name where it has no other; keeps a species
        for `species`.
        """
        name = scientific or common
        if not name:
            return Taxon()
        taxon = self._taxa.get(name) or taxon_of(name, self._known_names)
        if len(self._taxa) < _MOST_TAXA:
            self._taxa[name] = taxon
        species = taxon.species
        if species and species.scientific_name not in self._species:
            if scientific and common:
                language = language_of(self._by_field["common_name"].header)
                species = replaced(species, names=((language, common),))
            self._species[species.scientific_name] = species
        return taxon

    def _image(self, row: Mapping[str, str], record: str, file: str) -> ImageRecord:
        item, problems = self._item(row)
        optional = fields.OptionalFields(item, file, record, self._refuse_by_header)
        for problem in problems:
            optional.leave_out(problem)
        names = (optional.text(name, limit=200) for name in ("scientific_name", "common_name"))
        taxon = self._taxon(*names)
        location = location_of(optional)
        license, license_url, license_text = optional.license()
        return ImageRecord(
            source_id="",
            preferred_id=None,
            file_name="",
            record=record,
            scientific_name=taxon.species.scientific_name if taxon.species else "",
            taxon_text="" if taxon.species else taxon.text,
            license=license,
            license_url=license_url,
            license_text=license_text,
            rights_holder=optional.text("rights_holder", limit=500),
            observed_at=optional.moment("date"),
            latitude=location.latitude,
            longitude=location.longitude,
            location_uncertainty=location.uncertainty,
            coordinates_obscured=location.obscured,
            elevation=optional.number("elevation", low=-12_000, high=9_000),
            observer=optional.text("observer", limit=200),
            custom_fields=self._custom_values(row, optional),
        )

    def _item(self, row: Mapping[str, str]) -> tuple[dict[str, Any], list[RecordRefused]]:
        """The row's values by the canonical names of fields, with numbers and dates as those of
        other sources are; and why some are left out. A value that can't be read stays as it is,
        for `OptionalFields` to refuse. What says that a location may be obscured is among them.
        """
        item: dict[str, Any] = {
            name: row.get(column.header, "") for name, column in self._by_field.items()
        }
        for name in ("scientific_name", "common_name"):
            if is_nothing(item.get(name, "")):
                item.pop(name, None)
        problems = []
        if "coordinates" in item:
            both = item["coordinates"]
            pair = split_coordinates(both)
            if not any(pair) and not is_nothing(both):
                reason = (
                    f"must hold latitude and longitude, not {fields.shown(item['coordinates'])}"
                )
                problems.append(RecordRefused("coordinates", reason))
            for name, part in zip(("latitude", "longitude"), pair, strict=True):
                item.setdefault(name, part)
        for name in ("latitude", "longitude", *_LENGTHS):
            if name in item:
                try:
                    item[name] = self._number(name, item[name])
                except RecordRefused as error:
                    item[name] = None
                    problems.append(RecordRefused(name, error.reason))
        if "public_positional_accuracy" in item:
            # The other one is the person's own.
            item["positional_accuracy"] = item.pop("location_uncertainty", None)
        if "date" in item:
            item["date"] = self._moment(item["date"], item.get("time", ""))
        return item, problems

    def _number(self, name: str, text: str) -> float | str | None:
        """A number of a field; the text where it is none."""
        if is_nothing(text):
            return None
        column = self._by_field.get(name)
        if name in _AXES:
            number = coordinate_of(text, *_AXES[name])
        elif column:
            number = self._number_of(text, column, header_unit(column.header))
        return text if number is None else number

    def _number_of(self, text: str, column: Column, unit: float | None) -> float | None:
        marks = column.values.decimal_marks
        mark = next(iter(marks)) if len(marks) == 1 else ""
        return number_of(text, mark, self._open_marks, unit)

    def _moment(self, text: str, time: str) -> str:
        """A date, with its time where that has a column of its own, in ISO's form if it is read."""
        if is_nothing(text):
            return ""
        column = self._by_field["date"]
        order = self._day_first(column)
        day = text if _is_iso(text) else iso_date(text, order)
        if is_nothing(time) or not _is_iso(day):
            return day
        whole = iso_date(f"{day[:10]} {time.strip()}", order)
        return whole if _is_iso(whole) else day

    def _custom_values(
        self, row: Mapping[str, str], optional: fields.OptionalFields
    ) -> dict[str, CustomValue]:
        values = {}
        for column in self._custom:
            marks = column.values.decimal_marks
            mark = next(iter(marks)) if len(marks) == 1 else ""
            try:
                value = custom_value(
                    row.get(column.header, ""), column.kind, mark, self._open_marks,
                    self._day_first(column),
                )  # fmt: skip
            except RecordRefused as error:
                optional.leave_out(RecordRefused(column.header, error.reason))
                continue
            if value is not None:
                values[column.header] = value
        return values


def _is_iso(text: str) -> bool:
    """Whether a text is a date as tables have always had them."""
    try:
        return bool(datetime.fromisoformat(text.strip().replace("/", "-")))
    except ValueError:
        return False


def _clean(text: str) -> str:
    """A name of a taxon as it is stored; empty where it can't be."""
    if is_nothing(text):
        return ""
    try:
        return fields.text({"": text}, "", limit=200)
    except RecordRefused:
        return ""
