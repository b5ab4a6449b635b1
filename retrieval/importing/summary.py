"""What was understood of an import: names by their kinds, and reasons by how often they hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final

from core.text import printable
from retrieval.importing.records import Effect, ImageRecord, Refusal

EXAMPLES: Final = 3
MOST_REASONS: Final = 100
# What differs between sentences that say the same: quoted values, and numbers.
VALUE: Final = re.compile(r"""(“[^”]*”|'[^']*'|"[^"]*"|\d[\d.,]*)""")


@dataclass(slots=True)
class Understood:
    """Numbers of images by species, by folder name and by taxon text, in the order of the import.

    An image counts for each that it has.
    """

    species: Counter[str] = field(default_factory=Counter)
    folders: Counter[str] = field(default_factory=Counter)
    taxa: Counter[str] = field(default_factory=Counter)
    without_species: int = 0

    def new_in(self, record: ImageRecord) -> list[tuple[str, str]]:
        """Return the kinds and names of an image that none before it had."""
        return [(kind, name) for kind, name in _names(record) if name not in getattr(self, kind)]

    def take(self, record: ImageRecord) -> None:
        """Count an image."""
        for kind, name in _names(record):
            getattr(self, kind)[name] += 1
        self.without_species += not record.scientific_name

    def take_all(self, records: Iterable[ImageRecord]) -> None:
        """Count images."""
        for record in records:
            self.take(record)

    def numbers(self) -> dict[str, int]:
        """Return how many names of each kind there are, and how many images without species."""
        return {
            "species": len(self.species),
            "folder_names": len(self.folders),
            "taxon_texts": len(self.taxa),
            "without_species": self.without_species,
        }


def _names(record: ImageRecord) -> list[tuple[str, str]]:
    names = (
        ("species", record.scientific_name),
        ("folders", record.folder),
        ("taxa", record.taxon_text),
    )
    return [(kind, name) for kind, name in names if name]


@dataclass(slots=True)
class Reason:
    """Why records or fields are left out: how often, and the first of them."""

    part: str
    """The field, or empty."""
    effect: Effect
    pieces: list[str]
    """The sentence, with values at odd places."""
    count: int = 0
    examples: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the reason for a job's result; "…" where its values differ."""
        return {
            "field": self.part,
            "reason": "".join(self.pieces),
            "effect": self.effect.value,
            "count": self.count,
            "examples": self.examples,
        }


class Reasons:
    """Groups refusals by field and reason; reasons that differ in values alone are one."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, ...], Reason] = {}

    def take(self, refusal: Refusal) -> None:
        """Count a refusal."""
        pieces = VALUE.split(refusal.reason)
        key = (refusal.effect, refusal.field, *pieces[::2])
        if key not in self._by_key and len(self._by_key) >= MOST_REASONS:
            key, pieces = (refusal.effect, "", "other"), ["other reasons"]
        group = self._by_key.setdefault(key, Reason(key[1], refusal.effect, pieces))
        group.pieces = [
            one if one == other else "…" for one, other in zip(group.pieces, pieces, strict=True)
        ]
        group.count += 1
        if len(group.examples) < EXAMPLES:
            name = PurePath(refusal.file).name
            record = f"{name}: {refusal.record}" if refusal.record else refusal.file
            group.examples.append(printable(record))

    def listed(self) -> list[dict[str, Any]]:
        """Return the reasons as JSON, the most frequent first."""
        reasons = sorted(self._by_key.values(), key=lambda reason: -reason.count)
        return [reason.as_json() for reason in reasons]
