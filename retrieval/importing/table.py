"""A CSV table of images: one row an image, its file below the table's folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from core.csv_rows import RowError, csv_rows
from retrieval.importing import fields
from retrieval.importing.choices import ImportChoices
from retrieval.importing.locations import location_of, unread
from retrieval.importing.records import (
    ImageRecord,
    ImportRefused,
    RecordRefused,
    Refusal,
    SpeciesRecord,
)
from retrieval.importing.species_names import species_from_folder

REQUIRED: Final = ("file_name", "scientific_name")
OPTIONAL: Final = (
    "common_name", "date", "latitude", "longitude", "location_uncertainty", "elevation", "license",
    "license_url", "license_text", "rights_holder", "observer",
)  # fmt: skip
_NUMBERS: Final = ("latitude", "longitude", "location_uncertainty", "elevation")


class TableSource:
    """Reads a table with the columns REQUIRED, and of OPTIONAL those that it has.

    Rows that can't be used are refused by line; of others licenses, rights holders, dates, places,
    elevations and observers that are wrong are left out. Raises ImportRefused for a table whose
    header or text can't be read.
    """

    def __init__(
        self, path: Path, refuse: Callable[[Refusal], None], choices: ImportChoices
    ) -> None:
        self.path = path
        self._choices = choices
        self.root = path.parent
        self._refuse = refuse
        self._species: dict[str, SpeciesRecord] = {}
        self._count = 0
        self.unused: list[str] = []
        errors: list[RowError] = []
        for _, row in self._rows(errors):
            if self._count == 0:
                self.unused = unread(row, (*REQUIRED, *OPTIONAL))
            self._count += 1
            try:
                self._species_read(row)
            except RecordRefused:
                continue
        if errors:
            raise ImportRefused(str(path), f"{errors[0]}. Nothing was imported.")

    @property
    def highest_id(self) -> int:
        """The highest preferred id: -1, since images of tables have none."""
        return -1

    def default_dataset(self) -> str:
        """Return the table's folder and name, such as `park/photos`."""
        return f"{self.path.resolve().parent.name}/{self.path.stem}"

    def species(self) -> list[SpeciesRecord]:
        """Return the species of the rows."""
        return list(self._species.values())

    def count(self) -> int:
        """Count the rows."""
        return self._count

    def images(self) -> Iterator[ImageRecord]:
        """Yield the valid images in the table's order."""
        seen: set[str] = set()
        for line, row in self._rows([]):
            try:
                record = self._image(row, f"line {line}")
                if record.file_name in seen:
                    raise RecordRefused("file_name", "an earlier row has the same file")
                seen.add(record.file_name)
                yield record
            except RecordRefused as error:
                self._refuse(Refusal(str(self.path), f"line {line}", error.field, error.reason))

    def _rows(self, errors: list[RowError]) -> Iterator[tuple[int, dict[str, str]]]:
        with self.path.open("rb") as lines:
            yield from csv_rows(
                lines, name=self.path.name, required=REQUIRED, optional=OPTIONAL, errors=errors,
                others=True,
            )  # fmt: skip

    def _species_read(self, row: Mapping[str, str]) -> str:
        name = fields.text(row, "scientific_name", limit=200)
        if name and name not in self._species:
            try:
                parsed = species_from_folder(name)
            except RecordRefused as error:
                raise RecordRefused("scientific_name", error.reason) from None
            common = fields.text(row, "common_name", limit=200)
            names = (("en", common),) if common else ()
            self._species[name] = SpeciesRecord(
                scientific_name=name,
                genus=parsed.genus,
                specific_epithet=parsed.specific_epithet,
                names=names,
            )
        return name

    def _image(self, row: Mapping[str, str], record: str) -> ImageRecord:
        numbers = {name: _number(row.get(name, "").strip()) for name in _NUMBERS}
        optional = fields.OptionalFields({**row, **numbers}, str(self.path), record, self._refuse)
        location = location_of(optional)
        license, license_url, license_text = optional.license()
        return ImageRecord(
            source_id=fields.text(row, "file_name", limit=500, required=True),
            preferred_id=None,
            file_name=fields.path(row, "file_name"),
            record=record,
            scientific_name=self._species_read(row),
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
        )


def _number(text: str) -> float | str | None:
    """The number of a cell; a text that is none as it is, and None for a blank cell."""
    try:
        return float(text) if text else None
    except ValueError:
        return text
