"""Captions for training: some facts of a scene put into varied words.

A caption comes with the facts it states, so that training knows exactly which other images it
is also true of. Captions that state exactly what a demo query asks are never written.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from demo.attributes import Scene
from demo.wording import (
    AFTER_SEX_WORDS,
    AGE_WORDS,
    ANY_NOUNS,
    BEHAVIOUR_WORDS,
    CONDITION_WORDS,
    COUNT_WORDS,
    FOOD_WORDS,
    GROUP_NOUNS,
    HABITAT_WORDS,
    LIGHT_WORDS,
    OBJECT_WORDS,
    PLAN_BEHAVIOUR_WORDS,
    PLAN_NOUNS,
    SEXAGE_WORDS,
)

FACTS = (
    "species",
    "plan",
    "group",
    "morph",
    "sexage",
    "age",
    "behaviour",
    "habitat",
    "light",
    "object",
    "condition",
    "count",
)

_FRAMES = (
    "{}",
    "{}",
    "{}",
    "a photo of {}",
    "an image of {}",
    "{} seen in the wild",
    "picture showing {}",
    "observation of {}",
)


@dataclass(frozen=True)
class Caption:
    """A caption and the facts it states, as (name, value) pairs."""

    text: str
    facts: frozenset[tuple[str, str]]


def _nouns(scene: Scene, subject: str, rng: random.Random) -> tuple[str, str]:
    kind = scene.kind
    if subject == "species":
        name = rng.choice(
            (
                kind.common_name,
                kind.common_name,
                kind.common_name,
                *kind.other_names,
                kind.scientific_name,
            )
        )
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
            return rng.choice(
                (
                    f"eating {meal}",
                    f"feeding on {meal}",
                    f"with {meal} in its {mouth}",
                    f"holding {meal}",
                )
            )
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


def write_caption(
    scene: Scene, rng: random.Random, forbidden: frozenset[frozenset[tuple[str, str]]] = frozenset()
) -> Caption:
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
            before.append(
                rng.choice(
                    (scene.morph, scene.morph, f"{scene.morph}-coloured", f"{scene.morph} morph")
                )
            )
        else:
            after.append(
                rng.choice(
                    (
                        f"of the {scene.morph} morph",
                        f"in its {scene.morph} form",
                        f"{scene.morph} in colour",
                    )
                )
            )
    rng.shuffle(before)
    if "behaviour" in stated:
        after.append(_behaviour(scene, stated, rng))
    for name, words in (
        ("object", OBJECT_WORDS),
        ("condition", CONDITION_WORDS),
        ("habitat", HABITAT_WORDS),
        ("light", LIGHT_WORDS),
    ):
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
