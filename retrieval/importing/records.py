"""Records that readers yield: species, images, and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from core.errors import Refused
from core.text import printable


class Effect(StrEnum):
    """What became of a record that something was wrong with; the value is for people."""

    REFUSED = "refused"
    FIELD = "a field"  # left out; the record was imported without it
    NAME = "a name"  # of a file that has it in another form; the record was imported
    PASSED_OVER = "passed over"  # files that are no images, together


@dataclass(frozen=True)
class Refusal:
    """A record that was not imported, or not as it is: the file, the record and field in it, and
    the reason."""

    file: str
    record: str
    field: str
    reason: str
    effect: Effect = Effect.REFUSED

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.file, self.record, self.field) if part)
        return printable(f"{where}: {self.reason}")


class ImportRefused(Refused):
    """A source is refused as a whole, before anything was written."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(printable(f"{file}: {reason}"))
        self.file = file
        self.reason = reason


class RecordRefused(Exception):
    """A record is invalid; readers turn it into a Refusal."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field
        self.reason = reason


@dataclass(frozen=True)
class SpeciesRecord:
    """A species as a source describes it; unknown ranks are empty.

    `names` holds (BCP 47 language, vernacular name).
    """

    scientific_name: str
    kingdom: str = ""
    phylum: str = ""
    class_name: str = ""
    order: str = ""
    family: str = ""
    genus: str = ""
    specific_epithet: str = ""
    iconic_group: str = ""
    lookalike_group: str = ""
    conservation_status: str = ""
    names: tuple[tuple[str, str], ...] = ()


CustomValue = str | float | bool
"""A value of a custom field; a date is an ISO text."""


class ImageRecord(NamedTuple):
    """An image as a source describes it, before its file is read.

    `source_id` identifies it within its data set; `preferred_id` is the integer id that it gets if
    that is free; `file_name` is its path below the data set's folder, not checked yet; `width` and
    `height` are declared by the source, in pixels. `license_text` is the license in the source's
    words, `taxon_text` its name of a taxon that is no species, `folder` the names of the folders
    that are no species.
    """

    source_id: str
    preferred_id: int | None
    file_name: str
    record: str
    scientific_name: str = ""
    license: str = ""
    license_url: str = ""
    rights_holder: str = ""
    observed_at: datetime | None = None
    latitude: float | None = None
    longitude: float | None = None
    location_uncertainty: float | None = None
    width: int | None = None
    height: int | None = None
    coordinates_obscured: bool = False
    elevation: float | None = None
    observer: str = ""
    license_text: str = ""
    taxon_text: str = ""
    folder: str = ""
    custom_fields: Mapping[str, CustomValue] = MappingProxyType({})
