"""Captions for training: some facts of a scene put into varied words.

A caption comes with the facts it states, so that training knows exactly which other images it
is also true of. Captions that state exactly what a demo query asks are never written.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from retrieval.demo.attributes import Scene

FACTS = (
    "species", "plan", "group", "morph", "sexage", "age", "behaviour", "habitat", "light",
    "object", "condition", "count",
)

PLAN_NOUNS = {
    "hopper": (("hopper", "hoppers"), ("frog", "frogs"), ("jumping frog", "jumping frogs")),
    "songbird": (("songbird", "songbirds"), ("small bird", "small birds"), ("perching bird", "perching birds")),
    "wader": (("stilt", "stilts"), ("wader", "waders"), ("long-legged bird", "long-legged birds"), ("wading bird", "wading birds")),
    "beetle": (("beetle", "beetles"), ("bug", "bugs")),
    "butterfly": (("butterfly", "butterflies"), ("sailwing", "sailwings"), ("sailwing butterfly", "sailwing butterflies")),
    "fox": (("fox", "foxes"), ("brushfox", "brushfoxes")),
    "turtle": (("turtle", "turtles"), ("tortoise", "tortoises")),
    "lizard": (("lizard", "lizards"), ("skink", "skinks"), ("rockskink", "rockskinks")),
    "fish": (("fish", "fish"), ("pondfin", "pondfins"), ("fish", "fishes")),
    "snail": (("snail", "snails"), ("land snail", "land snails")),
    "spider": (("spider", "spiders"), ("dew spider", "dew spiders")),
}
GROUP_NOUNS = {
    "Amphibians": (("amphibian", "amphibians"),),
    "Birds": (("bird", "birds"),),
    "Insects": (("insect", "insects"),),
    "Mammals": (("mammal", "mammals"),),
    "Reptiles": (("reptile", "reptiles"),),
    "Ray-finned Fishes": (("fish", "fish"), ("ray-finned fish", "ray-finned fishes")),
    "Mollusks": (("mollusk", "mollusks"), ("mollusc", "molluscs")),
    "Arachnids": (("arachnid", "arachnids"),),
}
ANY_NOUNS = (("animal", "animals"), ("animal", "animals"), ("creature", "creatures"), ("wild animal", "wild animals"))

FOOD_WORDS = {
    "hopper": ("a fly", "an insect"), "songbird": ("a berry", "red berries", "berries", "fruit"),
    "wader": ("a fish", "a small fish"), "beetle": ("a leaf", "leaves"), "butterfly": ("nectar", "from a flower"),
    "fox": ("a fish", "a caught fish"), "turtle": ("a leaf", "leaves"), "lizard": ("a fly", "an insect"),
    "fish": ("a worm",), "snail": ("a leaf", "leaves"), "spider": ("a fly", "its prey", "an insect"),
}
BEHAVIOUR_WORDS = {
    "resting": ("resting", "at rest", "sitting still", "staying calm", "standing quietly", "idle"),
    "feeding": ("feeding", "eating", "having a meal", "eating food", "with food in its mouth", "foraging"),
    "moving": ("in motion", "on the move", "moving", "in mid movement"),
    "sleeping": ("sleeping", "asleep", "with eyes closed", "taking a nap", "fast asleep", "sound asleep", "dozing"),
    "displaying": ("displaying", "courting", "in courtship display", "showing off to attract a mate", "during courtship", "performing a mating display", "in a courtship dance"),
    "defending": ("defending itself", "in a defensive posture", "threatening", "with raised spikes", "warning off an attacker", "alarmed and bristling", "showing defensive behaviour"),
    "carrying young": ("carrying young", "carrying its young on its back", "with babies on its back", "giving its offspring a ride", "with young riding on the back", "caring for its babies"),
    "guarding eggs": ("guarding eggs", "guarding its eggs", "next to its eggs", "with a clutch of eggs", "watching over eggs", "beside its eggs", "protecting its eggs"),
}
PLAN_BEHAVIOUR_WORDS = {
    ("hopper", "moving"): ("leaping", "jumping", "in mid leap", "hopping"),
    ("songbird", "moving"): ("flying", "in flight", "taking off", "on the wing"),
    ("wader", "moving"): ("flying", "in flight", "taking off", "on the wing"),
    ("beetle", "moving"): ("flying", "in flight", "taking off with open wings"),
    ("butterfly", "moving"): ("flying", "in flight", "fluttering", "on the wing"),
    ("fox", "moving"): ("running", "leaping", "jumping", "bounding"),
    ("turtle", "moving"): ("crawling", "walking", "on the move"),
    ("lizard", "moving"): ("running", "leaping", "jumping"),
    ("fish", "moving"): ("darting upwards", "swimming fast"),
    ("snail", "moving"): ("crawling", "gliding along", "stretched out"),
    ("spider", "moving"): ("leaping", "jumping", "running"),
    ("hopper", "displaying"): ("inflating its throat", "calling with a swollen throat sac"),
    ("songbird", "displaying"): ("fanning its tail", "spreading its tail feathers", "spreading its feathers"),
    ("wader", "displaying"): ("fanning its plumes", "spreading its tail feathers", "raising its feathers"),
    ("fish", "displaying"): ("spreading its fins", "raising its fins"),
    ("lizard", "displaying"): ("spreading its frill", "showing its throat fan"),
    ("spider", "displaying"): ("waving its front legs", "raising its legs"),
    ("fox", "displaying"): ("raising its tail", "with its tail held high"),
    ("beetle", "displaying"): ("spreading its wings", "lifting its wing cases"),
    ("turtle", "defending"): ("withdrawn into its shell", "hiding in its shell", "hidden in the shell", "with its head pulled in", "retracted inside the shell"),
    ("snail", "defending"): ("foaming and withdrawn into its shell", "hiding in its shell"),
    ("fox", "defending"): ("snarling", "baring its teeth"),
    ("fox", "sleeping"): ("curled up asleep", "curled up", "sleeping in a ball"),
    ("wader", "sleeping"): ("sleeping on one leg",),
}
SEXAGE_WORDS = {
    "adult male": ("male", "adult male"),
    "adult female": ("female", "adult female"),
    "juvenile": ("juvenile", "young", "immature", "baby"),
}
AGE_WORDS = {"juvenile": ("juvenile", "young", "immature"), "adult": ("adult", "grown-up", "mature")}
AFTER_SEX_WORDS = {
    "adult male": ("with male ornaments", "with its breeding ornament", "showing male features"),
    "adult female": ("without male ornaments", "in plain female dress"),
    "juvenile": ("with juvenile spots", "with pale baby spots", "not yet grown up", "still growing"),
}
HABITAT_WORDS = {
    "rock": ("on a rock", "on rocks", "on a stone", "on a boulder", "on top of a rock", "in a rocky place"),
    "pond": ("in a pond", "at a pond", "on a lily pad", "by the water of a pond", "on a water lily leaf"),
    "meadow": ("in a meadow", "in the grass", "among meadow flowers", "in a field of flowers", "in grassland", "over a meadow"),
    "forest floor": ("on the forest floor", "in the forest", "in leaf litter", "in the woods", "among fallen leaves", "under trees"),
    "beach": ("on the beach", "on sand", "by the sea", "at the seashore", "on a sandy beach", "at the coast"),
    "snow": ("in the snow", "on snow", "in a winter landscape", "in deep snow", "in winter"),
    "tree branch": ("on a branch", "on a tree branch", "in a tree", "perched on a branch"),
    "reef": ("at a coral reef", "on a reef", "among corals", "near corals under water"),
    "seagrass": ("in seagrass", "among seagrass", "in a seagrass bed", "among underwater plants"),
    "specimen drawer": ("in a specimen drawer", "pinned in a collection", "as a museum specimen", "as a pinned specimen", "in a museum collection", "pinned with a label", "preserved in a drawer"),
}
LIGHT_WORDS = {
    "day": ("by day", "in daylight", "on a sunny day", "in sunshine", "in bright daylight", "during the day"),
    "sunset": ("at sunset", "in the evening", "at dusk", "under a red sky", "in evening light", "at sundown"),
    "night": ("at night", "by night", "in the dark", "under the moon", "in moonlight", "under the stars", "after dark"),
    "fog": ("in fog", "in the mist", "on a foggy day", "in thick fog", "on a misty morning"),
}
OBJECT_WORDS = {
    "net": ("behind a fishing net", "caught in a net", "with a net", "tangled in a net", "in a fishing net", "trapped behind netting"),
    "bottle": ("next to a plastic bottle", "with litter", "beside a discarded bottle", "near plastic rubbish", "with a thrown away bottle", "beside trash"),
    "ruler": ("with a ruler", "next to a measuring scale", "beside a scale bar", "being measured", "with a ruler for scale", "with a measuring stick in front"),
    "tag": ("with a tracking tag", "wearing a radio collar", "with a transmitter", "with a radio tag", "marked for tracking", "carrying a tracking device", "wearing a tag"),
    "camera trap": ("in front of a camera trap", "near a trail camera", "with a camera trap", "at a wildlife camera", "beside a camera on a post"),
    "fence": ("in front of a fence", "at a wooden fence", "near a fence", "by the fence"),
    "nest": ("in a nest", "on its nest", "nesting", "sitting in a nest of twigs", "in its nest"),
    "burrow": ("at its burrow", "in front of its den", "near a burrow", "by the entrance of a burrow", "beside its den"),
    "web": ("at its web", "in front of its web", "with a web", "by a spider web", "with a dewy web"),
}
CONDITION_WORDS = {
    "wounded": ("with a wound", "wounded", "injured", "with an open wound", "with a bleeding injury", "hurt and bleeding"),
    "bald patches": ("with bald patches", "with mange", "with skin disease", "with diseased skin", "with sore bare patches"),
    "mites": ("with mites", "infested with mites", "with red parasites", "covered in mites", "with parasitic mites on it", "carrying red mites"),
    "cleaner bird": ("with a cleaner bird on its back", "with a small bird riding on it", "with a little blue bird on its back", "accompanied by a cleaner bird", "with a bird perched on its back"),
}
COUNT_WORDS = {"1": ("one", "a single", "a lone", "only one"), "2": ("two", "a pair of", "two", "a couple of"), "3": ("three", "a group of three", "three", "a trio of")}
_FRAMES = ("{}", "{}", "{}", "a photo of {}", "an image of {}", "{} seen in the wild", "picture showing {}", "observation of {}")


@dataclass(frozen=True)
class Caption:
    """A caption and the facts it states, as (name, value) pairs."""

    text: str
    facts: frozenset[tuple[str, str]]


def _nouns(scene: Scene, subject: str, rng: random.Random) -> tuple[str, str]:
    kind = scene.kind
    if subject == "species":
        name = rng.choice((kind.common_name, kind.common_name, kind.common_name, *kind.other_names, kind.scientific_name))
        plural = name if name == kind.scientific_name else plural_of(name)
        return name.lower(), plural.lower()
    if subject == "plan":
        return rng.choice(PLAN_NOUNS[kind.plan])
    if subject == "group":
        return rng.choice(GROUP_NOUNS[kind.iconic_group])
    return rng.choice(ANY_NOUNS)


def plural_of(name: str) -> str:
    """Plural of an English vernacular name."""
    if name.endswith(("x", "sh", "ch")):
        return name + "es"
    return name + "s"


def _behaviour(scene: Scene, stated: set[str], rng: random.Random) -> str:
    plan = scene.kind.plan
    words = BEHAVIOUR_WORDS[scene.behaviour]
    if stated & {"species", "plan"}:
        special = PLAN_BEHAVIOUR_WORDS.get((plan, scene.behaviour), ())
        if special and rng.random() < 0.6:
            return rng.choice(special)
        if scene.behaviour == "feeding" and rng.random() < 0.6:
            meal = rng.choice(FOOD_WORDS[plan])
            if meal.startswith("from"):
                return f"feeding {meal}"
            mouth = "bill" if plan in ("songbird", "wader") else "mouth"
            return rng.choice((f"eating {meal}", f"feeding on {meal}", f"with {meal} in its {mouth}", f"holding {meal}"))
    return rng.choice(words)


def _choose(scene: Scene, rng: random.Random) -> set[str]:
    stated: set[str] = set()
    subject = rng.choices(("species", "plan", "group", ""), (0.36, 0.34, 0.08, 0.22))[0]
    if subject:
        stated.add(subject)
    share = rng.choice((0.12, 0.25, 0.4, 0.6))
    for name in ("morph", "behaviour", "habitat", "light", "count"):
        if rng.random() < share:
            stated.add(name)
    if rng.random() < share:
        stated.add(rng.choice(("sexage", "sexage", "age")))
    for name, empty in (("object", "none"), ("condition", "healthy")):
        if scene.fact(name) != empty and rng.random() < share + 0.25:
            stated.add(name)
    return stated


def write_caption(scene: Scene, rng: random.Random, forbidden: frozenset[frozenset[tuple[str, str]]] = frozenset()) -> Caption:
    """Word a random part of what ``scene`` shows.

    ``forbidden`` holds sets of facts that no caption may state exactly.
    """
    while True:
        stated = _choose(scene, rng)
        facts = frozenset((name, scene.fact(name)) for name in stated)
        if stated and facts not in forbidden:
            return Caption(_word(scene, stated, rng), facts)


def _word(scene: Scene, stated: set[str], rng: random.Random) -> str:
    subject = next((name for name in ("species", "plan", "group") if name in stated), "")
    one, many = _nouns(scene, subject, rng)
    before: list[str] = []
    after: list[str] = []
    if "sexage" in stated:
        if rng.random() < 0.85:
            before.append(rng.choice(SEXAGE_WORDS[scene.sexage]))
        else:
            after.append(rng.choice(AFTER_SEX_WORDS[scene.sexage]))
    if "age" in stated:
        before.append(rng.choice(AGE_WORDS[scene.fact("age")]))
    if "morph" in stated:
        if rng.random() < 0.85:
            before.append(rng.choice((scene.morph, scene.morph, f"{scene.morph}-coloured", f"{scene.morph} morph")))
        else:
            after.append(rng.choice((f"of the {scene.morph} morph", f"in its {scene.morph} form", f"{scene.morph} in colour")))
    rng.shuffle(before)
    if "behaviour" in stated:
        after.append(_behaviour(scene, stated, rng))
    for name, words in (("object", OBJECT_WORDS), ("condition", CONDITION_WORDS), ("habitat", HABITAT_WORDS), ("light", LIGHT_WORDS)):
        if name in stated:
            after.append(rng.choice(words[scene.fact(name)]))
    if rng.random() < 0.5:
        rng.shuffle(after)
    count = scene.count if "count" in stated else ""
    noun = many if count in ("2", "3") or (not count and rng.random() < 0.12) else one
    core = " ".join([*before, noun])
    if count:
        core = f"{rng.choice(COUNT_WORDS[count])} {core}"
    elif noun == one and rng.random() < 0.6:
        core = f"{'an' if core[0] in 'aeiou' else 'a'} {core}"
    text = " ".join([core, *after])
    if after and rng.random() < 0.12:
        text = f"{after[-1]}, {' '.join([core, *after[:-1]])}"
    return rng.choice(_FRAMES).format(text)
