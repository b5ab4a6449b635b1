"""What a person chooses of how a data set is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class ImportChoices:
    """How a data set is read; what isn't chosen is guessed."""

    folders_are_species: bool = False
    """Refuse folders whose names are no species, instead of keeping them as folder names."""
    above: str = ""
    """Names of folders above the one that is read, such as animals/birds, which say something."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Fields by the headers of a table's columns; an empty text where a column isn't used."""
    custom_fields: Mapping[str, str] = field(default_factory=dict)
    """Kinds of custom fields by the headers of the columns that are kept as such."""
    day_first: bool | None = None
    """Whether 03/04/2024 is the third of April; None where the table itself shows it."""

    def as_json(self) -> dict[str, Any]:
        """Return the choices for the parameters of a job."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> ImportChoices:
        """Return the choices of a job's parameters."""
        return cls(**(stored or {}))


GUESSED: Final = ImportChoices()
"""Nothing is chosen."""
