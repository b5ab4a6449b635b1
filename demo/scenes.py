"""What a scene shows: nine attributes, how they are sampled, and which scenes train the model.

The combination of the attributes decides, by a stable hash, whether a scene may appear in the demo
corpus or in the model's training set, never in both.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace

from demo.species import BY_NAME, SPECIES, Species, read_toml

SPECIMEN_HABITAT = "specimen drawer"
WATER = ("reef", "seagrass")
STRUCTURES = ("nest", "burrow", "web")
ON_LAND = (*STRUCTURES, "fence", "camera trap")
OF_ADULTS = ("displaying", "carrying young", "guarding eggs")
"""Behaviors that the young don't show."""
SPECIMEN_SHARE = 0.05
DEMO_SHARE = 4
"""One combination in this many belongs to the demo corpus."""
ATTEMPTS = 2000

WEIGHTS: dict[str, dict[str, float]] = read_toml("attributes.toml")


@dataclass(frozen=True)
class Scene:
    """Everything a scene shows; `draw_seed` only moves things and changes no attribute."""

    species: str
    morph: str
    sexage: str
    behavior: str
    habitat: str
    light: str
    object: str
    condition: str
    count: str
    draw_seed: str = ""

    @property
    def kind(self) -> Species:
        """The species shown."""
        return BY_NAME[self.species]

    def combination(self) -> tuple[str, ...]:
        """Return the nine attribute values in the order of ATTRIBUTES."""
        return astuple(self)[:-1]

    @property
    def partition(self) -> str:
        """ "demo" or "training", by SHA-256 of the combination."""
        digest = hashlib.sha256("\x1f".join(self.combination()).encode()).digest()
        return "demo" if int.from_bytes(digest[:4], "big") % DEMO_SHARE == 0 else "training"

    def fact(self, name: str) -> str:
        """Return one attribute, or "plan", "group" (iconic group) or "age" ("adult" or "juvenile").

        AttributeError for any other name.
        """
        if name == "plan":
            return self.kind.plan
        if name == "group":
            return self.kind.body_plan.iconic_group
        if name == "age":
            return self.sexage.split()[0]
        return str(getattr(self, name))

    def is_possible(self) -> bool:
        """Tell whether the attributes can be shown together.

        The young neither court nor breed; foxes lay no eggs; a collected specimen lies still; a
        nest, burrow or web belongs to its builder; fences and camera traps stand on land.
        """
        if self.sexage == "juvenile" and self.behavior in OF_ADULTS:
            return False
        if self.object in STRUCTURES and self.object != self.kind.body_plan.structure:
            return False
        if self.behavior == "guarding eggs" and self.kind.plan == "fox":
            return False
        if self.habitat == SPECIMEN_HABITAT:
            return (
                self.behavior == "resting"
                and self.light == "day"
                and self.object in ("none", "ruler")
                and self.condition in ("healthy", "wounded")
                and self.count != "3"
            )
        if self.habitat in WATER:
            return self.object not in ON_LAND and self.condition != "cleaner bird"
        return True


ATTRIBUTES = tuple(field.name for field in fields(Scene))[:-1]


@dataclass(frozen=True)
class Motif:
    """A recurring subject: `share` of a suitable species' scenes (0 to 1) show these facts."""

    shown: Mapping[str, str]
    share: float

    def suits(self, kind: Species) -> bool:
        """Tell whether this species can show the motif."""
        plan = kind.body_plan
        facts = {"species": kind.scientific_name, "plan": kind.plan, "group": plan.iconic_group}
        if any(self.shown.get(name, value) != value for name, value in facts.items()):
            return False
        if self.shown.get("object") in ON_LAND and kind.plan == "fish":
            return False
        return self.shown.get("habitat", SPECIMEN_HABITAT) in (*plan.habitats, SPECIMEN_HABITAT)


def scene(index: int, seed: int, *, partition: str = "demo", motifs: Sequence[Motif] = ()) -> Scene:
    """Return scene `index` of the endless series that `seed` names.

    Species take turns, so every species is equally common. Only combinations of the given
    partition ("demo" or "training") are returned. Some scenes follow one of `motifs`.
    """
    kind = SPECIES[index % len(SPECIES)]
    label = f"{seed}:{partition}:{index}"
    rng = random.Random(label)
    shown: Mapping[str, str] = {}
    turn = rng.random()
    for motif in motifs:
        if motif.suits(kind):
            turn -= motif.share
            if turn < 0:
                shown = motif.shown
                break
    return replace(sample(rng, kind, shown, partition), draw_seed=label)


def sample(rng: random.Random, kind: Species, shown: Mapping[str, str], partition: str) -> Scene:
    """Draw one possible scene of a species and a partition with the attributes in `shown` fixed.

    ValueError when there is none.
    """
    for _ in range(ATTEMPTS):
        drawn = _draw(rng, kind, shown)
        if drawn.habitat == SPECIMEN_HABITAT:
            still = {"behavior": "resting", "light": "day"}
            drawn = _draw(rng, kind, {**still, **shown, "habitat": SPECIMEN_HABITAT})
        if drawn.is_possible() and drawn.partition == partition:
            return drawn
    raise ValueError(f"The {partition} partition holds no {kind.english} with {dict(shown)}")


def _draw(rng: random.Random, kind: Species, shown: Mapping[str, str]) -> Scene:
    foreign = {*STRUCTURES} - {kind.body_plan.structure}

    def pick(name: str) -> str:
        weights = {value: share for value, share in WEIGHTS[name].items() if value not in foreign}
        return rng.choices(list(weights), list(weights.values()))[0]

    values = {"species": kind.scientific_name, "morph": rng.choice(list(kind.morphs))}
    values |= {name: pick(name) for name in ("sexage", "behavior")}
    specimen = rng.random() < SPECIMEN_SHARE
    values["habitat"] = SPECIMEN_HABITAT if specimen else rng.choice(kind.body_plan.habitats)
    values |= {name: pick(name) for name in ("light", "object", "condition", "count")}
    return Scene(**values | {name: shown[name] for name in shown if name in ATTRIBUTES})
