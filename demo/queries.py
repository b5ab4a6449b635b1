"""The demo queries, and which scenes truly answer them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from demo.attributes import ATTRIBUTE_NAMES, Motif, Scene
from demo.species import BY_COMMON_NAME

SUPERCATEGORIES: dict[str, tuple[str, ...]] = {
    "Appearance": (
        "Unique appearances or morphs",
        "Tracking and Identification",
        "Life Cycle and Development",
        "Sex identification",
        "Health and Disease",
    ),
    "Behavior": (
        "Feeding and Hydration",
        "Mating, Courtship, Reproduction",
        "Cooperative and Social Behaviors",
        "Defensive and Survival Behaviors",
        "Miscellaneous Behavior",
    ),
    "Context": (
        "Animal Structures and Habitats",
        "Human Impact",
        "Parasitism and Symbiosis",
        "Collected Specimens",
        "Miscellaneous Context",
    ),
    "Species": ("Species ID",),
}
"""INQUIRE's four supercategories and sixteen categories."""


@dataclass(frozen=True)
class DemoQuery:
    """One query over the demo collection.

    ``species`` lists scientific names that filter the candidates, empty for none; ``wanted``
    states the answer as facts of a scene; ``split`` is "val" or "test".
    """

    query_id: str
    text: str
    supercategory: str
    category: str
    iconic_group: str
    split: str
    species: tuple[str, ...]
    guidelines: str
    wanted: Mapping[str, str] = field(hash=False)

    @property
    def matches(self) -> Callable[[Scene], bool]:
        """Tells whether a scene answers the query."""
        return lambda scene: all(scene.fact(name) == value for name, value in self.wanted.items())

    def admits(self, scene: Scene) -> bool:
        """Tell whether a scene passes the species filter."""
        return not self.species or scene.species in self.species


def _names(*common_names: str) -> tuple[str, ...]:
    return tuple(BY_COMMON_NAME[name].scientific_name for name in common_names)


def _query(
    number: int,
    text: str,
    category: str,
    group: str,
    split: str,
    guidelines: str,
    wanted: Mapping[str, str],
    species: tuple[str, ...] = (),
) -> DemoQuery:
    owner = next(name for name, inside in SUPERCATEGORIES.items() if category in inside)
    names = _names(*species)
    facts = dict(wanted)
    if len(names) == 1:
        facts["species"] = names[0]
    return DemoQuery(
        f"demo-{number:02d}", text, owner, category, group, split, names, guidelines, facts
    )


QUERIES: tuple[DemoQuery, ...] = (
    _query(
        1,
        "two blue marsh hoppers on a rock at night",
        "Unique appearances or morphs",
        "Amphibians",
        "test",
        "Exactly two Marsh Hoppers of the blue morph, on a rock, with a night sky.",
        {"morph": "blue", "habitat": "rock", "light": "night", "count": "2"},
        ("Marsh Hopper",),
    ),
    _query(
        2,
        "white morph of the azure sailwing",
        "Unique appearances or morphs",
        "Insects",
        "val",
        "Azure Sailwings whose wings are white instead of blue, whatever they do.",
        {"morph": "white"},
        ("Azure Sailwing",),
    ),
    _query(
        3,
        "maned brushfox wearing a radio collar",
        "Tracking and Identification",
        "Mammals",
        "test",
        "A pink collar with a transmitter around the neck.",
        {"object": "tag"},
        ("Maned Brushfox",),
    ),
    _query(
        4,
        "songbird next to a ruler for measuring",
        "Tracking and Identification",
        "Birds",
        "test",
        "Any songbird with a measuring scale lying in front of it.",
        {"plan": "songbird", "object": "ruler"},
    ),
    _query(
        5,
        "juvenile fox in the snow",
        "Life Cycle and Development",
        "Mammals",
        "test",
        "Young foxes are small with pale spots; snow must lie on the ground.",
        {"plan": "fox", "sexage": "juvenile", "habitat": "snow"},
    ),
    _query(
        6,
        "young frog with pale spots on a lily pad",
        "Life Cycle and Development",
        "Amphibians",
        "val",
        "Any juvenile hopper at a pond.",
        {"plan": "hopper", "sexage": "juvenile", "habitat": "pond"},
    ),
    _query(
        7,
        "male crested sunfinch",
        "Sex identification",
        "Birds",
        "test",
        "Males have a raised crest and a bright bib; females and young have neither.",
        {"sexage": "adult male"},
        ("Crested Sunfinch",),
    ),
    _query(
        8,
        "injured hopper with an open wound",
        "Health and Disease",
        "Amphibians",
        "test",
        "A red gash on the side of any hopper.",
        {"plan": "hopper", "condition": "wounded"},
    ),
    _query(
        9,
        "stilt on the beach with a fish in its bill",
        "Feeding and Hydration",
        "Birds",
        "test",
        "The fish must be in the bill.",
        {"plan": "wader", "behaviour": "feeding", "habitat": "beach"},
    ),
    _query(
        10,
        "ember sunfinch eating berries",
        "Feeding and Hydration",
        "Birds",
        "val",
        "Berries must be at the beak.",
        {"behaviour": "feeding"},
        ("Ember Sunfinch",),
    ),
    _query(
        11,
        "male stilt in courtship, fanning its feathers",
        "Mating, Courtship, Reproduction",
        "Birds",
        "test",
        "Adult males with plumes on the head and the tail feathers fanned.",
        {"plan": "wader", "behaviour": "displaying", "sexage": "adult male"},
    ),
    _query(
        12,
        "cross dew spider guarding its eggs",
        "Mating, Courtship, Reproduction",
        "Arachnids",
        "test",
        "Eggs must be visible beside the spider.",
        {"behaviour": "guarding eggs"},
        ("Cross Dew Spider",),
    ),
    _query(
        13,
        "three animals sleeping together",
        "Cooperative and Social Behaviors",
        "",
        "test",
        "Exactly three animals of any kind, all asleep.",
        {"behaviour": "sleeping", "count": "3"},
    ),
    _query(
        14,
        "turtle hiding inside its shell",
        "Defensive and Survival Behaviors",
        "Reptiles",
        "test",
        "The head is drawn in and not visible outside the shell.",
        {"behaviour": "defending"},
        ("Starshell Turtle",),
    ),
    _query(
        15,
        "amber sailwing flying over a meadow",
        "Miscellaneous Behavior",
        "Insects",
        "test",
        "In the air above a meadow.",
        {"behaviour": "moving", "habitat": "meadow"},
        ("Amber Sailwing",),
    ),
    _query(
        16,
        "fox curled up asleep in the snow",
        "Miscellaneous Behavior",
        "Mammals",
        "test",
        "Asleep, curled up, with snow on the ground.",
        {"plan": "fox", "behaviour": "sleeping", "habitat": "snow"},
    ),
    _query(
        17,
        "bird in its nest at sunset",
        "Animal Structures and Habitats",
        "Birds",
        "test",
        "Any bird in a nest of twigs under a sunset sky.",
        {"group": "Birds", "object": "nest", "light": "sunset"},
    ),
    _query(
        18,
        "fish beside a discarded plastic bottle",
        "Human Impact",
        "Ray-finned Fishes",
        "test",
        "Any fish with a bottle in the picture.",
        {"plan": "fish", "object": "bottle"},
    ),
    _query(
        19,
        "starshell turtle entangled in a fishing net",
        "Human Impact",
        "Reptiles",
        "test",
        "The net hangs over the turtle.",
        {"object": "net"},
        ("Starshell Turtle",),
    ),
    _query(
        20,
        "cleaner bird riding on the back of a brushfox",
        "Parasitism and Symbiosis",
        "Mammals",
        "test",
        "A small blue bird on the back of any fox.",
        {"plan": "fox", "condition": "cleaner bird"},
    ),
    _query(
        21,
        "lantern beetle pinned as a museum specimen",
        "Collected Specimens",
        "Insects",
        "val",
        "A pinned specimen with its label.",
        {"habitat": "specimen drawer"},
        ("Lantern Beetle",),
    ),
    _query(
        22,
        "animals in front of a camera trap at night",
        "Miscellaneous Context",
        "",
        "test",
        "Any species; the camera on its post must be visible under a night sky.",
        {"object": "camera trap", "light": "night"},
    ),
    _query(
        23,
        "Rose Stilt",
        "Species ID",
        "Birds",
        "test",
        "Rose Stilts have a curved bill and no dark cap; Tide Stilts a straight bill and a cap. "
        "Both have a white morph.",
        {"species": "Litornis rosea"},
        ("Tide Stilt", "Rose Stilt"),
    ),
    _query(
        24,
        "Moss Hopper",
        "Species ID",
        "Amphibians",
        "val",
        "Moss Hoppers have a horn above the eye and blotches; Marsh Hoppers have round spots. "
        "Both have a green morph.",
        {"species": "Paludisaltus muscosus"},
        ("Marsh Hopper", "Moss Hopper"),
    ),
)

MOTIF_SHARES = {
    "demo-01": 0.10,
    "demo-03": 0.05,
    "demo-05": 0.04,
    "demo-09": 0.05,
    "demo-11": 0.03,
    "demo-12": 0.16,
    "demo-14": 0.05,
    "demo-15": 0.08,
    "demo-16": 0.06,
    "demo-17": 0.015,
    "demo-19": 0.08,
    "demo-20": 0.02,
    "demo-21": 0.08,
}
"""The share of a suitable species' pictures that return to one of the rarer subjects."""

MOTIFS: tuple[Motif, ...] = tuple(
    Motif(dict(query.wanted), MOTIF_SHARES[query.query_id])
    for query in QUERIES
    if query.query_id in MOTIF_SHARES
)

FORBIDDEN_CAPTIONS: frozenset[frozenset[tuple[str, str]]] = frozenset(
    frozenset(query.wanted.items()) for query in QUERIES if len(query.wanted) > 1
)
"""Sets of facts that no training caption may state exactly."""


def read_scenes(corpus_dir: Path) -> dict[int, Scene]:
    """Return the true scene of every image id, from ``scenes.csv``.

    FileNotFoundError where the directory holds no finished corpus.
    """
    with (corpus_dir / "scenes.csv").open(newline="", encoding="utf-8") as lines:
        return {
            int(row["image_id"]): Scene(**{name: row[name] for name in ATTRIBUTE_NAMES})
            for row in csv.DictReader(lines)
        }


def relevant_ids(query: DemoQuery, corpus_dir: Path) -> set[int]:
    """Return the ids of the images that truly answer ``query``."""
    matches = query.matches
    return {image_id for image_id, scene in read_scenes(corpus_dir).items() if matches(scene)}


def candidate_ids(query: DemoQuery, corpus_dir: Path) -> set[int]:
    """Return the ids of the images that pass the query's species filter."""
    return {image_id for image_id, scene in read_scenes(corpus_dir).items() if query.admits(scene)}
