"""Captions for training: some facts of a scene put into varied words.

A caption comes with the facts that it states, so that training knows for which other images it is
also true. No caption states exactly what a demo query asks.
"""

from __future__ import annotations

import random
import tomllib
from dataclasses import dataclass
from pathlib import Path

from demo.queries import QUERIES
from demo.scenes import ATTRIBUTES, Scene

FACTS = ("species", "plan", "group", *ATTRIBUTES[1:3], "age", *ATTRIBUTES[3:])
FORBIDDEN = frozenset(frozenset(query.shows.items()) for query in QUERIES if len(query.shows) > 1)
"""Sets of facts that no caption may state exactly."""
WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Caption:
    """A caption and the facts it states, as (name, value) pairs."""

    text: str
    facts: frozenset[tuple[str, str]]


def write_caption(scene: Scene, rng: random.Random) -> Caption:
    """A caption that states a random part of what `scene` shows."""
    while True:
        stated = _choose(scene, rng)
        facts = frozenset((name, scene.fact(name)) for name in stated)
        if stated and facts not in FORBIDDEN:
            return Caption(_word(scene, stated, rng), facts)


def _choose(scene: Scene, rng: random.Random) -> set[str]:
    subject = rng.choices(("species", "plan", "group", ""), (0.36, 0.34, 0.08, 0.22))[0]
    stated = {subject} - {""}
    share = rng.choice((0.12, 0.25, 0.4, 0.6))
    for name in ("morph", "behavior", "habitat", "light", "count"):
        if rng.random() < share:
            stated.add(name)
    if rng.random() < share:
        stated.add(rng.choice(("sexage", "sexage", "age")))
    for name, empty in (("object", "none"), ("condition", "healthy")):
        if scene.fact(name) != empty and rng.random() < share + 0.25:
            stated.add(name)
    return stated


def _nouns(scene: Scene, stated: set[str], rng: random.Random) -> tuple[str, str]:
    """Singular and plural of the most specific subject stated."""
    kind = scene.kind
    if "species" in stated:
        names = [kind.english] * 3 + [kind.other_name] * bool(kind.other_name)
        name: str = rng.choice([*names, kind.scientific_name]).lower()
        if name == kind.scientific_name.lower():
            return name, name
        return name, name + ("es" if name.endswith(("x", "sh", "ch")) else "s")
    if "plan" in stated:
        nouns = WORDS["plan"][kind.plan]["nouns"]
    elif "group" in stated:
        nouns = WORDS["group"][kind.body_plan.iconic_group]
    else:
        nouns = WORDS["animal"]
    singular, plural = rng.choice(nouns)
    return singular, plural


def _behavior(scene: Scene, stated: set[str], rng: random.Random) -> str:
    phrases = WORDS["behavior"][scene.behavior]
    if stated & {"species", "plan"}:
        own = WORDS["plan"][scene.kind.plan]
        if scene.behavior in own and rng.random() < 0.6:
            phrases = own[scene.behavior]
        elif scene.behavior == "feeding" and rng.random() < 0.6:
            meal = rng.choice(own["foods"])
            if meal.startswith("from"):
                return f"feeding {meal}"
            mouth = "bill" if scene.fact("group") == "Birds" else "mouth"
            patterns = "eating {}", "feeding on {}", f"with {{}} in its {mouth}", "holding {}"
            return rng.choice(patterns).format(meal)
    return str(rng.choice(phrases))


def _word(scene: Scene, stated: set[str], rng: random.Random) -> str:
    singular, plural = _nouns(scene, stated, rng)
    before: list[str] = []
    after: list[str] = []
    if "sexage" in stated:
        in_front = rng.random() < 0.85
        words = WORDS["sexage" if in_front else "ornament"][scene.sexage]
        (before if in_front else after).append(rng.choice(words))
    if "age" in stated:
        before.append(rng.choice(WORDS["age"][scene.fact("age")]))
    if "morph" in stated:
        in_front = rng.random() < 0.85
        words = WORDS["before_morph" if in_front else "after_morph"]
        (before if in_front else after).append(rng.choice(words).format(scene.morph))
    rng.shuffle(before)
    if "behavior" in stated:
        after.append(_behavior(scene, stated, rng))
    for name in ("object", "condition", "habitat", "light"):
        if name in stated:
            after.append(rng.choice(WORDS[name][scene.fact(name)]))
    if rng.random() < 0.5:
        rng.shuffle(after)
    count = scene.count if "count" in stated else ""
    noun = plural if count in ("2", "3") or (not count and rng.random() < 0.12) else singular
    core = " ".join([*before, noun])
    if count:
        core = f"{rng.choice(WORDS['count'][count])} {core}"
    elif noun == singular and rng.random() < 0.6:
        core = f"{'an' if core[0] in 'aeiou' else 'a'} {core}"
    text = " ".join([core, *after])
    if after and rng.random() < 0.12:
        text = f"{after[-1]}, {' '.join([core, *after[:-1]])}"
    return str(rng.choice(WORDS["frames"]).format(text))
