"""What describes an invented species, and where each body plan lives and what it builds."""

from __future__ import annotations

from dataclasses import dataclass

SPECIMEN_HABITAT = "specimen drawer"

PLAN_HABITATS: dict[str, tuple[str, ...]] = {
    "hopper": ("rock", "pond", "meadow", "forest floor", "tree branch"),
    "songbird": ("tree branch", "meadow", "forest floor", "snow", "rock"),
    "wader": ("beach", "pond", "rock", "snow"),
    "beetle": ("forest floor", "meadow", "tree branch", "rock"),
    "butterfly": ("meadow", "forest floor", "tree branch", "rock"),
    "fox": ("meadow", "forest floor", "snow", "rock", "beach"),
    "turtle": ("beach", "pond", "meadow", "reef"),
    "lizard": ("rock", "beach", "forest floor", "tree branch"),
    "fish": ("reef", "seagrass"),
    "snail": ("rock", "meadow", "forest floor", "tree branch"),
    "spider": ("forest floor", "meadow", "tree branch", "rock"),
}

PLAN_STRUCTURE: dict[str, str] = {
    "songbird": "nest",
    "wader": "nest",
    "fox": "burrow",
    "lizard": "burrow",
    "beetle": "burrow",
    "spider": "web",
}


@dataclass(frozen=True)
class Morph:
    """One colour form: its name, then body, belly and accent colours as ``#rrggbb``."""

    name: str
    body: str
    belly: str
    accent: str


@dataclass(frozen=True)
class Species:
    """One invented species with its full lineage.

    ``plan`` names the body plan that draws it, ``pattern`` and ``trait`` the marks that
    tell it from its relatives, and ``lookalike_group`` is empty where it has no doubles.
    """

    common_name: str
    german_name: str
    iconic_group: str
    phylum: str
    klass: str
    order: str
    family: str
    genus: str
    epithet: str
    plan: str
    pattern: str
    trait: str
    morphs: tuple[Morph, ...]
    lookalike_group: str = ""
    other_names: tuple[str, ...] = ()
    kingdom: str = "Animalia"

    @property
    def scientific_name(self) -> str:
        """Genus and specific epithet."""
        return f"{self.genus} {self.epithet}"

    @property
    def habitats(self) -> tuple[str, ...]:
        """Where it is photographed alive."""
        return PLAN_HABITATS[self.plan]

    @property
    def structure(self) -> str:
        """What it builds or digs, or an empty string."""
        return PLAN_STRUCTURE.get(self.plan, "")

    def morph(self, name: str) -> Morph:
        """Return the colour form called ``name``; KeyError when the species has none."""
        for morph in self.morphs:
            if morph.name == name:
                return morph
        raise KeyError(f"{self.scientific_name} has no {name!r} morph")
