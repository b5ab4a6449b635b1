"""The demo's queries, and which scenes truly answer them, read from `data/queries.csv`."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from demo.scenes import ATTRIBUTES, Motif, Scene
from demo.species import SPECIES, read_table

OPEN_QUERIES = 24
"""The number of queries for people to label; the others belong to the demo's release."""


@dataclass(frozen=True)
class DemoQuery:
    """One query; its fields are the columns of the application's own query files.

    `species` lists the scientific names that filter its candidates, empty for none. `shows` gives
    the facts of a scene that answers it; `motif_share` is the share of a suitable species' scenes
    that are drawn to answer it. `split` is "val" or "test".
    """

    query_id: int
    query_text: str
    category: str
    iconic_group: str
    split: str
    species: tuple[str, ...]
    guidelines: str
    scientific_terms: bool
    motif_share: float
    shows: Mapping[str, str] = field(hash=False)

    def matches(self, scene: Scene) -> bool:
        """Tell whether a scene answers the query."""
        return all(scene.fact(name) == value for name, value in self.shows.items())

    def admits(self, scene: Scene) -> bool:
        """Tell whether a scene passes the species filter."""
        return not self.species or scene.species in self.species


def _query(row: dict[str, str]) -> DemoQuery:
    names = {kind.english: kind.scientific_name for kind in SPECIES}
    species = tuple(names[name] for name in row["species"].split("; ") if name)
    shows = dict(fact.split("=") for fact in row["shows"].split("; "))
    if len(species) == 1:
        shows["species"] = species[0]
    values: dict[str, Any] = {
        **row,
        "query_id": int(row["query_id"]),
        "species": species,
        "scientific_terms": row["scientific_terms"] == "yes",
        "motif_share": float(row["motif_share"] or 0),
        "shows": shows,
    }
    return DemoQuery(**values)


_ALL = tuple(map(_query, read_table("queries.csv")))
QUERIES, JUDGED = _ALL[:OPEN_QUERIES], _ALL[OPEN_QUERIES:]
_HALF_TEXTS: Final = {
    1: "marsh hoppers on a rock",
    2: "azure sailwing",
    4: "songbird",
    6: "frog on a lily pad",
    15: "amber sailwing",
    17: "bird at sunset",
    18: "fish",
    19: "starshell turtle",
    20: "brushfox",
    21: "lantern beetle",
    22: "animals at night",
}
HALVES = tuple(
    replace(query, query_id=100 + query.query_id, query_text=_HALF_TEXTS[query.query_id])
    for query in QUERIES
    if query.query_id in _HALF_TEXTS
)
"""Queries that the model understands (AP@50 of 0.9 and more by `demo/training/score.py`), with half
their text missing and the same answers: for simulations."""
MOTIFS = tuple(Motif(query.shows, query.motif_share) for query in QUERIES if query.motif_share)


def read_scenes(corpus: Path) -> dict[int, Scene]:
    """Return the true scene of every image id, from the corpus's `scenes.csv`.

    FileNotFoundError where the directory holds no finished corpus.
    """
    with (corpus / "scenes.csv").open(newline="", encoding="utf-8") as lines:
        return {
            int(row["image_id"]): Scene(**{name: row[name] for name in ATTRIBUTES})
            for row in csv.DictReader(lines)
        }
