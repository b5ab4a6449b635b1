"""The invented species of the demo collection: lineage, names, colour morphs and habitats."""

from __future__ import annotations

from dataclasses import dataclass

LIT_HABITATS = ("rock", "pond", "meadow", "forest floor", "beach", "snow", "tree branch")
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


_CHORDATES = "Chordata"
_HOPPERS = ("Amphibians", _CHORDATES, "Amphibia", "Anura", "Paludisaltidae")
_FINCHES = ("Birds", _CHORDATES, "Aves", "Passeriformes", "Lumifringidae")
_STILTS = ("Birds", _CHORDATES, "Aves", "Charadriiformes", "Litornithidae")
_BEETLES = ("Insects", "Arthropoda", "Insecta", "Coleoptera", "Gemmicaridae")
_SAILWINGS = ("Insects", "Arthropoda", "Insecta", "Lepidoptera", "Velopteridae")
_FOXES = ("Mammals", _CHORDATES, "Mammalia", "Carnivora", "Silvulpidae")
_TURTLES = ("Reptiles", _CHORDATES, "Reptilia", "Testudines", "Stellemydidae")
_SKINKS = ("Reptiles", _CHORDATES, "Reptilia", "Squamata", "Petroscincidae")
_FISHES = ("Ray-finned Fishes", _CHORDATES, "Actinopterygii", "Perciformes", "Lacustrinidae")
_SNAILS = ("Mollusks", "Mollusca", "Gastropoda", "Stylommatophora", "Spirocochlidae")
_SPIDERS = ("Arachnids", "Arthropoda", "Arachnida", "Araneae", "Roraneidae")

GREEN = Morph("green", "#5fae3d", "#dcecaa", "#f2b632")
BLUE = Morph("blue", "#2f7fe0", "#bfe0ff", "#ffcf3f")
RED = Morph("red", "#d8402f", "#ffd9c2", "#ffd24a")
WHITE = Morph("white", "#f0efe9", "#ffffff", "#e8836b")
BROWN = Morph("brown", "#8a5a34", "#e6cfae", "#e88b3a")

SPECIES: tuple[Species, ...] = (
    Species(
        "Marsh Hopper", "Moorhüpfer", *_HOPPERS, "Paludisaltus", "communis", "hopper", "spots",
        "plain", (GREEN, BLUE, Morph("golden", "#e2ab23", "#fff0b8", "#d9512c")),
        "spotted hoppers", ("Bog Hopper",),
    ),
    Species(
        "Moss Hopper", "Mooshüpfer", *_HOPPERS, "Paludisaltus", "muscosus", "hopper", "blotches",
        "horned", (GREEN, Morph("brown", "#94663a", "#ead6b0", "#7cc04a")), "spotted hoppers",
    ),
    Species(
        "Reed Hopper", "Schilfhüpfer", *_HOPPERS, "Arundisaltus", "lineatus", "hopper", "stripes",
        "slim", (GREEN, Morph("red", "#c9492f", "#ffdcb8", "#3b6f8f")),
    ),
    Species(
        "Crested Sunfinch", "Hauben-Sonnenfink", *_FINCHES, "Lumifringa", "cristata", "songbird",
        "wingbar", "crest",
        (Morph("yellow", "#f0bf26", "#fff3c4", "#e2582f"), Morph("red", "#d94a38", "#ffdccb", "#f4c33f")),
        "sunfinches",
    ),
    Species(
        "Ember Sunfinch", "Glut-Sonnenfink", *_FINCHES, "Lumifringa", "ardens", "songbird", "mask",
        "plain",
        (Morph("red", "#cf3f33", "#ffd5c4", "#2f3440"), Morph("yellow", "#ecb92c", "#fff1bf", "#2f3440")),
        "sunfinches",
    ),
    Species(
        "Dusk Warbler", "Dämmersänger", *_FINCHES, "Vesperila", "cana", "songbird", "streaks",
        "longtail",
        (Morph("grey", "#7d8b99", "#e3e8ec", "#8d6bd1"), Morph("violet", "#7a58b8", "#dccff2", "#f0a94a"), WHITE),
    ),
    Species(
        "Tide Stilt", "Gezeitenstelzer", *_STILTS, "Litornis", "aestuarii", "wader", "cap",
        "straight", (Morph("grey", "#8996a3", "#f2f5f7", "#e0523c"), WHITE), "stilts",
        ("Shore Stilt",),
    ),
    Species(
        "Rose Stilt", "Rosenstelzer", *_STILTS, "Litornis", "rosea", "wader", "plain", "curved",
        (Morph("pink", "#ee88a6", "#ffe3ea", "#5c4a68"), WHITE), "stilts",
    ),
    Species(
        "Lantern Beetle", "Laternenkäfer", *_BEETLES, "Gemmicara", "lucens", "beetle", "stripes",
        "horn",
        (Morph("green", "#2f9e63", "#a8e6c0", "#f5d547"), Morph("blue", "#3460c9", "#a9c4ff", "#f5d547"),
         Morph("copper", "#b9682f", "#f0c79c", "#3fb59b")),
    ),
    Species(
        "Shield Beetle", "Schildkäfer", *_BEETLES, "Gemmicara", "guttata", "beetle", "spots",
        "round", (Morph("red", "#d5392c", "#ffc7b8", "#222831"), Morph("black", "#2d3138", "#7b838f", "#e8552f")),
    ),
    Species(
        "Azure Sailwing", "Azur-Segelfalter", *_SAILWINGS, "Veloptera", "azurea", "butterfly",
        "borders", "tails", (Morph("blue", "#3f8df0", "#b8dcff", "#1c2b4f"), WHITE), "sailwings",
    ),
    Species(
        "Amber Sailwing", "Bernstein-Segelfalter", *_SAILWINGS, "Veloptera", "succinea", "butterfly",
        "veins", "tails", (Morph("orange", "#f0872b", "#ffd9a0", "#4a2a17"), WHITE), "sailwings",
    ),
    Species(
        "Eyed Sailwing", "Augen-Segelfalter", *_SAILWINGS, "Ocelloptera", "vigilans", "butterfly",
        "eyes", "round",
        (BROWN, Morph("orange", "#ec8a33", "#ffdcae", "#5a3fa0"), Morph("violet", "#8458c4", "#dcc9ff", "#f5c542")),
        "sailwings",
    ),
    Species(
        "Maned Brushfox", "Mähnen-Buschfuchs", *_FOXES, "Silvulpes", "jubata", "fox", "socks",
        "whitetip",
        (Morph("red", "#d9692c", "#fff0df", "#4a3026"), Morph("silver", "#98a3ad", "#f1f3f5", "#39424c"),
         Morph("white", "#eeeeea", "#ffffff", "#a9b3bd")),
        "brushfoxes",
    ),
    Species(
        "Ringtail Brushfox", "Ringelschwanz-Buschfuchs", *_FOXES, "Silvulpes", "annulata", "fox",
        "mask", "ringtail",
        (Morph("grey", "#8b8f98", "#eef0f2", "#33373f"), Morph("red", "#cf6a35", "#ffeedd", "#3b2a25"),
         Morph("black", "#3d4048", "#9a9fa8", "#c9cdd3")),
        "brushfoxes",
    ),
    Species(
        "Starshell Turtle", "Sternpanzer-Schildkröte", *_TURTLES, "Stellemys", "radiata", "turtle",
        "stars", "plain",
        (Morph("olive", "#7c8b3c", "#d9d6a0", "#f2c84b"), Morph("golden", "#d9a032", "#fbe6b0", "#8a4b22")),
    ),
    Species(
        "Banded Rockskink", "Bänder-Felsskink", *_SKINKS, "Petroscincus", "zonatus", "lizard",
        "bands", "plain", (GREEN, Morph("orange", "#e6812f", "#ffe0b8", "#4b2f6b")), "rockskinks",
    ),
    Species(
        "Frilled Rockskink", "Kragen-Felsskink", *_SKINKS, "Petroscincus", "collaris", "lizard",
        "spots", "frill",
        (BROWN, Morph("teal", "#1f9c97", "#bdeee6", "#f09a3c"), Morph("green", "#63a83f", "#dcecaa", "#e0703a")),
        "rockskinks",
    ),
    Species(
        "Banded Pondfin", "Bänder-Teichflosser", *_FISHES, "Lacustrina", "fasciata", "fish", "bands",
        "short", (Morph("golden", "#f2ac2e", "#fff0c4", "#3b4b8f"), Morph("blue", "#2f7fe0", "#c4e4ff", "#ffd23f")),
        "pondfins",
    ),
    Species(
        "Veil Pondfin", "Schleier-Teichflosser", *_FISHES, "Lacustrina", "velata", "fish", "spots",
        "veil", (Morph("red", "#e0473a", "#ffd9cc", "#ffcf4a"), Morph("silver", "#b4c2cf", "#f4f8fb", "#5a6f9a")),
        "pondfins",
    ),
    Species(
        "Ribbon Snail", "Bänder-Turmschnecke", *_SNAILS, "Spirocochlea", "vittata", "snail",
        "ribbons", "round", (Morph("yellow", "#f0c93c", "#e7c7a0", "#6b3f22"), Morph("pink", "#ef93a8", "#ecd0b4", "#7a3350")),
    ),
    Species(
        "Glass Snail", "Glas-Turmschnecke", *_SNAILS, "Vitricochlea", "spiralis", "snail", "plain",
        "tall", (Morph("brown", "#9a643a", "#d8b890", "#f2d29a"), Morph("white", "#eceae2", "#d9c2a6", "#9fd0d9")),
    ),
    Species(
        "Cross Dew Spider", "Kreuz-Tauspinne", *_SPIDERS, "Rorarana", "cruciata", "spider", "cross",
        "long", (Morph("orange", "#df7d2e", "#ffdcae", "#ffffff"), Morph("black", "#33363e", "#7c828c", "#f4d24a")),
        "dew spiders",
    ),
    Species(
        "Banded Dew Spider", "Bänder-Tauspinne", *_SPIDERS, "Rorarana", "zonata", "spider", "bands",
        "short", (Morph("green", "#7dbb3c", "#e6f3b8", "#d0413c"), Morph("white", "#f0eee4", "#ffffff", "#6b5bb5")),
        "dew spiders",
    ),
)

BY_SCIENTIFIC_NAME: dict[str, Species] = {item.scientific_name: item for item in SPECIES}
BY_COMMON_NAME: dict[str, Species] = {item.common_name: item for item in SPECIES}
COLOURS: tuple[str, ...] = tuple(
    sorted({morph.name for item in SPECIES for morph in item.morphs})
)
PLANS: tuple[str, ...] = tuple(PLAN_HABITATS)
