"""What a scene shows: the attribute vocabulary, its sampling, and the partition of combinations.

A scene is described by nine attributes. Their combination decides, by a stable hash, whether
the scene may appear in the demo collection or in the model's training set, never in both.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from demo.kinds import SPECIMEN_HABITAT, Species
from demo.species import BY_SCIENTIFIC_NAME, SPECIES

SEXAGES = ("adult male", "adult female", "juvenile")
BEHAVIOURS = (
    "resting",
    "feeding",
    "moving",
    "sleeping",
    "displaying",
    "defending",
    "carrying young",
    "guarding eggs",
)
HABITATS = (
    "rock",
    "pond",
    "meadow",
    "forest floor",
    "beach",
    "snow",
    "tree branch",
    "reef",
    "seagrass",
    SPECIMEN_HABITAT,
)
LIGHTS = ("day", "sunset", "night", "fog")
OBJECTS = (
    "none",
    "net",
    "bottle",
    "ruler",
    "tag",
    "camera trap",
    "fence",
    "nest",
    "burrow",
    "web",
)
CONDITIONS = ("healthy", "wounded", "bald patches", "mites", "cleaner bird")
COUNTS = ("1", "2", "3")

ATTRIBUTE_NAMES = (
    "species",
    "morph",
    "sexage",
    "behaviour",
    "habitat",
    "light",
    "object",
    "condition",
    "count",
)
PARTITIONS = ("demo", "training")
DEMO_SHARE = 4
"""One combination in this many belongs to the demo partition."""

_SEXAGE_WEIGHTS = (0.38, 0.37, 0.25)
_BEHAVIOUR_WEIGHTS = (0.27, 0.15, 0.14, 0.10, 0.11, 0.09, 0.07, 0.07)
_LIGHT_WEIGHTS = (0.38, 0.20, 0.23, 0.19)
_OBJECT_WEIGHTS = {
    "none": 0.50,
    "net": 0.07,
    "bottle": 0.07,
    "ruler": 0.07,
    "tag": 0.08,
    "camera trap": 0.06,
    "fence": 0.06,
    "nest": 0.09,
    "burrow": 0.09,
    "web": 0.09,
}
_CONDITION_WEIGHTS = (0.76, 0.07, 0.05, 0.06, 0.06)
_COUNT_WEIGHTS = (0.60, 0.25, 0.15)
_SPECIMEN_SHARE = 0.05
_PATIENCE = 2000
LAND_OBJECTS = frozenset({"nest", "burrow", "web", "fence", "camera trap"})
_ADULT_ONLY = frozenset({"displaying", "carrying young", "guarding eggs"})


@dataclass(frozen=True)
class Scene:
    """Everything a scene shows; ``draw_seed`` only moves things about, it changes no attribute."""

    species: str
    morph: str
    sexage: str
    behaviour: str
    habitat: str
    light: str
    object: str
    condition: str
    count: str
    draw_seed: str = ""

    @property
    def kind(self) -> Species:
        """The species shown."""
        return BY_SCIENTIFIC_NAME[self.species]

    def combination(self) -> tuple[str, ...]:
        """Return the nine attribute values in ``ATTRIBUTE_NAMES`` order."""
        return tuple(getattr(self, name) for name in ATTRIBUTE_NAMES)

    def fact(self, name: str) -> str:
        """Return one attribute, or a fact that follows from them.

        Beside ``ATTRIBUTE_NAMES`` there are ``plan``, ``group`` (iconic group) and ``age``
        ("adult" or "juvenile"). AttributeError for any other name.
        """
        if name == "plan":
            return self.kind.plan
        if name == "group":
            return self.kind.iconic_group
        if name == "age":
            return "juvenile" if self.sexage == "juvenile" else "adult"
        return str(getattr(self, name))


def partition_of(combination: tuple[str, ...]) -> str:
    """Return "demo" or "training" for a combination of attribute values, by SHA-256."""
    digest = hashlib.sha256("\x1f".join(combination).encode()).digest()
    return "demo" if int.from_bytes(digest[:4], "big") % DEMO_SHARE == 0 else "training"


@dataclass(frozen=True)
class Motif:
    """A recurring subject of the collection: attribute values that are drawn together.

    ``share`` is the share of a suitable species' scenes that follow it, 0 to 1.
    """

    wanted: Mapping[str, str]
    share: float

    def suits(self, kind: Species) -> bool:
        """Tell whether this species can show the motif."""
        if self.wanted.get("species", kind.scientific_name) != kind.scientific_name:
            return False
        if self.wanted.get("plan", kind.plan) != kind.plan:
            return False
        if self.wanted.get("group", kind.iconic_group) != kind.iconic_group:
            return False
        if self.wanted.get("object") in LAND_OBJECTS and kind.plan == "fish":
            return False
        return self.wanted.get("habitat", SPECIMEN_HABITAT) in (*kind.habitats, SPECIMEN_HABITAT)


def _pick(rng: random.Random, values: tuple[str, ...], weights: tuple[float, ...]) -> str:
    return rng.choices(values, weights)[0]


def _draw(rng: random.Random, kind: Species, wanted: Mapping[str, str]) -> Scene:
    values: dict[str, str] = {"species": kind.scientific_name}
    values["morph"] = rng.choice(kind.morphs).name
    values["sexage"] = _pick(rng, SEXAGES, _SEXAGE_WEIGHTS)
    values["behaviour"] = _pick(rng, BEHAVIOURS, _BEHAVIOUR_WEIGHTS)
    specimen = rng.random() < _SPECIMEN_SHARE
    values["habitat"] = SPECIMEN_HABITAT if specimen else rng.choice(kind.habitats)
    values["light"] = _pick(rng, LIGHTS, _LIGHT_WEIGHTS)
    structures = {"nest", "burrow", "web"} - {kind.structure}
    objects = tuple(name for name in OBJECTS if name not in structures)
    values["object"] = _pick(rng, objects, tuple(_OBJECT_WEIGHTS[name] for name in objects))
    values["condition"] = _pick(rng, CONDITIONS, _CONDITION_WEIGHTS)
    values["count"] = _pick(rng, COUNTS, _COUNT_WEIGHTS)
    values.update({name: value for name, value in wanted.items() if name not in ("plan", "group")})
    return Scene(**values)


def is_possible(scene: Scene) -> bool:
    """Tell whether the attributes can be shown together.

    The young neither court nor breed; foxes lay no eggs; a collected specimen lies still; only
    its builder sits by a nest, burrow or web; fences and camera traps stand on land.
    """
    if scene.sexage == "juvenile" and scene.behaviour in _ADULT_ONLY:
        return False
    if scene.object in ("nest", "burrow", "web") and scene.object != scene.kind.structure:
        return False
    if scene.behaviour == "guarding eggs" and scene.kind.plan == "fox":
        return False
    if scene.habitat == SPECIMEN_HABITAT:
        return (
            scene.behaviour == "resting"
            and scene.light == "day"
            and scene.object in ("none", "ruler")
            and scene.condition in ("healthy", "wounded")
            and scene.count != "3"
        )
    if scene.habitat in ("reef", "seagrass"):
        return scene.object not in LAND_OBJECTS and (scene.condition != "cleaner bird")
    return True


def sample(rng: random.Random, kind: Species, wanted: Mapping[str, str] | None = None) -> Scene:
    """Draw one possible scene of ``kind``, with the attributes in ``wanted`` held fixed.

    ValueError when the wanted attributes cannot be shown together.
    """
    fixed = dict(wanted or {})
    for _ in range(_PATIENCE):
        drawn = _draw(rng, kind, fixed)
        if drawn.habitat == SPECIMEN_HABITAT:
            still = {"behaviour": "resting", "light": "day"}
            drawn = _draw(rng, kind, {**still, **fixed, "habitat": SPECIMEN_HABITAT})
        if is_possible(drawn):
            return drawn
    raise ValueError(f"{kind.common_name} cannot be shown with {fixed}")


def scene(
    index: int,
    seed: int,
    *,
    partition: str = "demo",
    motifs: tuple[Motif, ...] = (),
) -> Scene:
    """Return scene ``index`` of the endless series that ``seed`` names.

    Species take turns, so every species is equally common. Only combinations of the given
    partition are returned. Some scenes follow one of ``motifs``. ValueError for an unknown
    partition.
    """
    if partition not in PARTITIONS:
        raise ValueError(f"partition must be one of {PARTITIONS}, not {partition!r}")
    kind = SPECIES[index % len(SPECIES)]
    label = f"{seed}:{partition}:{index}"
    rng = random.Random(label)
    wanted: Mapping[str, str] = {}
    turn = rng.random()
    for motif in motifs:
        if motif.suits(kind):
            turn -= motif.share
            if turn < 0:
                wanted = motif.wanted
                break
    for _ in range(_PATIENCE):
        drawn = sample(rng, kind, wanted)
        if partition_of(drawn.combination()) == partition:
            return replace(drawn, draw_seed=label)
    raise ValueError(f"the {partition} partition holds no {kind.common_name} with {dict(wanted)}")
