"""The queries of the demo's release, labelled from what the scenes truly show.

They stand beside the demo's open queries. Three use words that the demo model never learnt, as
INQUIRE's queries with scientific terms do.
"""

from __future__ import annotations

from typing import Final

from demo.queries import DemoQuery
from demo.species import SPECIES
from labeling.categories import supercategory_of

#: Those whose words only an expert knows.
SCIENTIFIC: Final = frozenset({"demo-25", "demo-28", "demo-35"})


def _labelled(
    number: int,
    text: str,
    category: str,
    group: str,
    split: str,
    guidelines: str,
    wanted: dict[str, str],
) -> DemoQuery:
    """A query whose species filter is that of the animals it names, if it names some."""
    named = {name: wanted[name] for name in ("plan", "group") if name in wanted}
    species = tuple(
        kind.scientific_name
        for kind in SPECIES
        if named.get("plan", kind.plan) == kind.plan
        and named.get("group", kind.iconic_group) == kind.iconic_group
    )
    return DemoQuery(
        query_id=f"demo-{number:02d}",
        text=text,
        supercategory=supercategory_of(category),
        category=category,
        iconic_group=group,
        split=split,
        species=species if named else (),
        guidelines=guidelines,
        wanted=wanted,
    )


LABELLED: Final[tuple[DemoQuery, ...]] = (
    _labelled(
        25,
        "melanistic brushfox",
        "Unique appearances or morphs",
        "Mammals",
        "test",
        "Brushfoxes of the black morph.",
        {"plan": "fox", "morph": "black"},
    ),
    _labelled(
        26,
        "hopper beside a ruler",
        "Tracking and Identification",
        "Amphibians",
        "val",
        "A measuring scale lies in front of any hopper.",
        {"plan": "hopper", "object": "ruler"},
    ),
    _labelled(
        27,
        "young rockskink",
        "Life Cycle and Development",
        "Reptiles",
        "test",
        "Juveniles are small with pale spots.",
        {"plan": "lizard", "sexage": "juvenile"},
    ),
    _labelled(
        28,
        "bird with alopecia",
        "Health and Disease",
        "Birds",
        "test",
        "Bald patches on any bird.",
        {"group": "Birds", "condition": "bald patches"},
    ),
    _labelled(
        29,
        "fish eating a worm",
        "Feeding and Hydration",
        "Ray-finned Fishes",
        "test",
        "The worm must be at the mouth.",
        {"plan": "fish", "behaviour": "feeding"},
    ),
    _labelled(
        30,
        "fox carrying its young",
        "Mating, Courtship, Reproduction",
        "Mammals",
        "test",
        "The young one is carried.",
        {"plan": "fox", "behaviour": "carrying young"},
    ),
    _labelled(
        31,
        "bird asleep",
        "Miscellaneous Behavior",
        "Birds",
        "val",
        "Eyes closed.",
        {"group": "Birds", "behaviour": "sleeping"},
    ),
    _labelled(
        32,
        "songbird in its nest",
        "Animal Structures and Habitats",
        "Birds",
        "test",
        "A nest of twigs.",
        {"plan": "songbird", "object": "nest"},
    ),
    _labelled(
        33,
        "spider in its web",
        "Animal Structures and Habitats",
        "Arachnids",
        "test",
        "The web must be visible.",
        {"plan": "spider", "object": "web"},
    ),
    _labelled(
        34,
        "animal beside a fence",
        "Human Impact",
        "",
        "test",
        "Any animal with a fence in the picture.",
        {"object": "fence"},
    ),
    _labelled(
        35,
        "turtle with ectoparasites",
        "Parasitism and Symbiosis",
        "Reptiles",
        "test",
        "Mites sit on the turtle.",
        {"plan": "turtle", "condition": "mites"},
    ),
    _labelled(
        36,
        "insect pinned in a collection drawer",
        "Collected Specimens",
        "Insects",
        "val",
        "A pinned specimen with its label.",
        {"group": "Insects", "habitat": "specimen drawer"},
    ),
    _labelled(
        37,
        "hopper guarding its eggs",
        "Mating, Courtship, Reproduction",
        "Amphibians",
        "test",
        "The eggs must be visible.",
        {"plan": "hopper", "behaviour": "guarding eggs"},
    ),
    _labelled(
        38,
        "fish tangled in a net",
        "Human Impact",
        "Ray-finned Fishes",
        "test",
        "The net must touch the fish.",
        {"plan": "fish", "object": "net"},
    ),
    _labelled(
        39,
        "bird with an open wound",
        "Health and Disease",
        "Birds",
        "test",
        "A red wound on any bird.",
        {"group": "Birds", "condition": "wounded"},
    ),
)
