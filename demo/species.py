"""The invented species and their body plans, read from the tables in `data/`."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class BodyPlan:
    """What the species of a family have in common; `data/body_plans.toml` explains the fields."""

    iconic_group: str
    lineage: str
    habitats: tuple[str, ...]
    meal: str
    structure: str = ""
    scale: float = 1.0
    leans: bool = True
    sinks: bool = True


@dataclass(frozen=True)
class Species:
    """One species; `pattern` and `trait` are the marks that tell it from its relatives.

    `morphs` has the body, belly and accent color (`#rrggbb`) of each color form. `lookalikes` names
    the group of species that it is mistaken for, or is empty.
    """

    plan: str
    scientific_name: str
    english: str
    german: str
    other_name: str
    lookalikes: str
    pattern: str
    trait: str
    morphs: Mapping[str, list[str]]

    @property
    def body_plan(self) -> BodyPlan:
        """The body plan of its family."""
        return BODY_PLANS[self.plan]

    @property
    def lineage(self) -> list[str]:
        """Kingdom, phylum, class, order, family, genus and specific epithet."""
        return f"{self.body_plan.lineage} {self.scientific_name}".split()


def read_table(name: str) -> list[dict[str, str]]:
    """The rows of a CSV file in `data/`."""
    with (DATA / name).open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def read_toml(name: str) -> dict[str, Any]:
    """The tables of a TOML file in `data/`."""
    return tomllib.loads((DATA / name).read_text(encoding="utf-8"))


def _species(row: dict[str, str]) -> Species:
    morphs = {name: colors for name, *colors in map(str.split, row.pop("morphs").split("; "))}
    return Species(plan=row.pop("body_plan"), morphs=morphs, **row)


BODY_PLANS = {name: BodyPlan(**values) for name, values in read_toml("body_plans.toml").items()}
SPECIES = tuple(map(_species, read_table("species.csv")))
BY_NAME = {kind.scientific_name: kind for kind in SPECIES}
