"""A table of images in whatever file people keep it: one row an image, its file below the table's
folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from core.text import printable
from retrieval.corpus.models import CustomField
from retrieval.importing import cells, columns, fields
from retrieval.importing.choices import ImportChoices
from retrieval.importing.headers import header_unit, language_of
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
from retrieval.importing.species_names import Taxon, taxon_of
from retrieval.importing.table_choice import Part, parts_of

#: First rows by which columns are guessed; those that a person sees.
_SAMPLE: Final = 50
_SHOWN: Final = 5
_HEMISPHERES: Final = {"latitude": ("N", "S"), "longitude": ("E", "W")}
#: Fields whose numbers are lengths in meters.
_LENGTHS: Final = ("location_uncertainty", "elevation")
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
        self._count = self._row_count = 0
        self._species: dict[str, SpeciesRecord] = {}
        self._taxa: dict[str, Taxon] = {}
        self._known_names = known_names(by_form=True)
        headers = dict.fromkeys(header for part in self._parts for header in part.sheet.header)
        self.columns = columns.choose_columns(list(headers), choices)
        self.questions = self._guess_fields()
        self._by_field = {column.field: column for column in self.columns if column.field}
        self._look_through()
        self._guess_kinds()

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
    def unused(self) -> list[str]:
        """The headers of columns with values that are neither read nor kept."""
        return [one.header for one in self.columns if one.values.filled and not one.used]

    @property
    def used(self) -> list[str]:
        """What the other columns are read as, for people: `Datum → date`."""
        return [
            f"{one.header} → {one.used}{f' ({one.note})' if one.note else ''}"
            for one in self.columns
            if one.used
        ]

    @property
    def custom_fields(self) -> dict[str, str]:
        """The kinds of the custom fields by their names."""
        return {one.header: one.kind for one in self.columns if one.kind and not one.field}

    @property
    def choices(self) -> ImportChoices:
        """The choices that read the table as it is read now, whatever is guessed later."""
        kept = self.custom_fields
        others = {one.header: one.field for one in self.columns if one.header not in kept}
        return replace(self._choices, columns=others, custom_fields=kept)

    def described(self) -> dict[str, Any]:
        """What a person is shown of how the table is read."""
        return {
            "names": [part.below(part.sheet.path.name) for part in self._parts],
            "notes": list(dict.fromkeys(note for one in self._parts for note in one.sheet.notes)),
            "rows": self._row_count,
            "columns": [
                {
                    "header": one.header, "field": one.field, "kind": one.kind or one.values.kind,
                    "values": [printable(cell[:100]) for cell in one.sample[:_SHOWN]],
                    "kept": bool(one.kind), "private": one.private, "note": one.note,
                    "filled": one.values.filled,
                }
                for one in self.columns
            ],
            "questions": [{"about": one.about, "text": one.text} for one in self.questions],
            "day_first": self._choices.day_first,
            "unused": self.unused,
        }  # fmt: skip

    def images(self) -> Iterator[ImageRecord]:
        """Yield the valid images in the table's order."""
        seen: set[str] = set()
        for part, number, row, problem in self._rows() if "file_name" in self._by_field else ():
            file, place = str(part.sheet.path), f"{part.sheet.unit} {number}"
            try:
                if problem:
                    raise RecordRefused("", problem)
                cell = fields.path({"file_name": self._cell(row, "file_name")}, "file_name")
                record = self._image(row, place, file)
                for name in map(part.below, part.files.found(cell) or [cell]):
                    # The id is the clean name, as it was when names had to be paths as they are.
                    own_id = fields.text({"file_name": name}, "file_name", limit=500)
                    if own_id in seen:
                        raise RecordRefused("file_name", "an earlier row has the same file")
                    seen.add(own_id)
                    yield record._replace(source_id=own_id, file_name=name, folder=part.folder)
            except RecordRefused as error:
                self._refuse_by_header(Refusal(file, place, error.field, error.reason))

    def _rows(self) -> Iterator[tuple[Part, int, dict[str, str], str]]:
        for part in self._parts:
            for number, row, problem in part.sheet.rows():
                yield part, number, dict(zip(part.sheet.header, row, strict=False)), problem

    def _cell(self, row: Mapping[str, str], name: str) -> str:
        column = self._by_field.get(name)
        return row.get(column.header, "") if column else ""

    def _refuse_by_header(self, refusal: Refusal) -> None:
        """Refuse with the header of the column in place of its field."""
        column = self._by_field.get(refusal.field)
        self._refuse(replace(refusal, field=column.header) if column else refusal)

    def _guess_fields(self) -> list[columns.Question]:
        """Give the columns their fields, from the first rows; refuse web addresses."""
        for _, _, row, _ in islice(self._rows(), _SAMPLE):
            for column in self.columns:
                column.sample.append(row.get(column.header, ""))
        files = self._parts[0].files
        questions = columns.guess_fields(self.columns, files)
        if header := columns.addresses_in(self.columns, files):
            raise ImportRefused(
                str(self.path),
                f"Its column “{header}” holds web addresses, and no file of an image is named. "
                "Images aren't fetched here: put them beside the table, with the id of the "
                "observation or photo in their names, or have `curate` make a corpus of "
                "iNaturalist's or GBIF's archives (docs/curation.md).",
            )
        return questions

    def _look_through(self) -> None:
        """Read all rows once: count them, note their species, and how their values are written."""
        for part, _, row, problem in self._rows():
            self._row_count += 1
            if problem:
                self._count += 1
                continue
            self._count += part.files.count(self._cell(row, "file_name"))
            for column in self.columns:
                column.values.add(row.get(column.header, ""))
            names = {name: self._cell(row, name) for name in ("scientific_name", "common_name")}
            self._taxon(fields.OptionalFields(names, "", "", lambda refusal: None))

    def _guess_kinds(self) -> None:
        """Give the other columns a kind, and all the order of their dates, or ask for it."""
        # Spreadsheets write columns on that nobody has filled.
        self.columns = [
            one for one in self.columns if one.values.filled or not one.header.startswith("Column ")
        ]
        known = CustomField.objects.filter(name__in=[one.header for one in self.columns])
        chosen = self._choices.day_first
        columns.guess_kinds(self.columns, dict(known.values_list("name", "kind")), chosen)
        self._custom = [one for one in self.columns if one.kind and not one.field]
        for column in self.columns:
            values = column.values
            column.day_first = chosen if values.order is None else values.order
            if (column.field or column.kind) != cells.DATE:
                continue
            if values.open_dates and column.day_first is None:
                text = f"What comes first in “{column.header}”, the day or the month? "
                text += f"{values.open_dates:,} of its dates, such as {values.an_open_date}, can "
                self.questions.append(columns.Question("day_first", text + "be read both ways."))
            elif values.open_dates or values.order is not None:
                first = "day" if column.day_first else "month"
                how = "as chosen" if values.order is None else "as some show"
                column.note = f"In dates the {first} comes first, {how}"
        numeric = {*_HEMISPHERES, *_LENGTHS, cells.NUMBER}
        used = [one.values for one in self.columns if (one.field or one.kind) in numeric]
        # Points too may stand before decimals or thousands, where other columns have commas.
        self._open_marks = ",." if any("," in one.decimal_marks for one in used) else ","

    def _taxon(self, optional: fields.OptionalFields) -> Taxon:
        """What a row says of its taxon, by its common name where it has no other; keeps a species
        for `species`.
        """
        texts = (optional.text(name, limit=200) for name in ("scientific_name", "common_name"))
        scientific, common = ("" if cells.is_nothing(text) else text for text in texts)
        if not (name := scientific or common):
            return Taxon()
        taxon = self._taxa.get(name) or taxon_of(name, self._known_names)
        if len(self._taxa) < _MOST_TAXA:
            self._taxa[name] = taxon
        species = taxon.species
        if species and species.scientific_name not in self._species:
            if scientific and common:
                language = language_of(self._by_field["common_name"].header)
                species = replace(species, names=((language, common),))
            self._species[species.scientific_name] = species
        return taxon

    def _image(self, row: Mapping[str, str], record: str, file: str) -> ImageRecord:
        item, problems = self._item(row)
        optional = fields.OptionalFields(item, file, record, self._refuse_by_header)
        custom: dict[str, CustomValue] = {}
        for column in self._custom:
            text, mark = row.get(column.header, ""), column.values.mark
            try:
                value = cells.custom_value(
                    text, column.kind, mark, self._open_marks, column.day_first
                )
            except RecordRefused as error:
                problems.append(RecordRefused(column.header, error.reason))
            else:
                custom |= {column.header: value} if value is not None else {}
        for problem in problems:
            optional.leave_out(problem)
        taxon = self._taxon(optional)
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
            custom_fields=custom,
        )

    def _item(self, row: Mapping[str, str]) -> tuple[dict[str, Any], list[RecordRefused]]:
        """The row's values by the canonical names of fields, with numbers and dates as those of
        other sources are; and why some are left out. A value that can't be read stays as it is,
        for `OptionalFields` to refuse. What says that a location may be obscured is among them.
        """
        item: dict[str, Any] = {name: self._cell(row, name) for name in self._by_field}
        problems = []
        for name in (one for one in (*_HEMISPHERES, *_LENGTHS, "date") if one in item):
            text, column = item[name], self._by_field[name]
            number: float | None = None
            try:
                if cells.is_nothing(text):
                    text = None
                elif name == "date":
                    text = _moment(text, item.get("time", ""), column.day_first)
                elif name in _HEMISPHERES:
                    number = cells.coordinate_of(text, *_HEMISPHERES[name])
                else:
                    unit, mark = header_unit(column.header), column.values.mark
                    number = cells.number_of(text, mark, self._open_marks, unit)
            except RecordRefused as error:
                text = None
                problems.append(RecordRefused(name, error.reason))
            item[name] = text if number is None else number
        if "public_positional_accuracy" in item:
            # The other one is the person's own.
            item["positional_accuracy"] = item.pop("location_uncertainty", None)
        return item, problems


def _moment(text: str, time: str, day_first: bool | None) -> str:
    """A date, with its time where that has a column of its own, in ISO's form if it is read."""
    day = text if cells.is_iso(text) else cells.iso_date(text, day_first)
    whole = cells.iso_date(f"{day[:10]} {time.strip()}", None)
    return whole if not cells.is_nothing(time) and cells.is_iso(whole) else day
