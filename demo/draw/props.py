# ruff: noqa: E501  (path data stays on one line)
"""Things beside, on and in front of the animals."""

from __future__ import annotations

import itertools
import math
import random

from demo.draw.ink import (
    SIZE,
    Figure,
    Ink,
    box,
    darker,
    dot,
    group,
    line,
    mix,
    oval,
    path,
    polygon,
)
from demo.draw.settings import leaf
from demo.draw.skies import blades

FOOD = {
    "hopper": "fly",
    "songbird": "berry",
    "wader": "fish",
    "beetle": "leaf",
    "butterfly": "flower",
    "fox": "fish",
    "turtle": "leaf",
    "lizard": "fly",
    "fish": "worm",
    "snail": "leaf",
    "spider": "fly",
}


def food(figure: Figure, plan: str) -> str:
    """What the animal is eating, at its mouth."""
    x, y = figure.mouth
    meal = FOOD[plan]
    if meal == "fly":
        tongue = line(f"M{x - 4},{y} L{x + 14},{y - 3}", "#e8637a", 3.4)
        return (
            tongue
            + oval(x + 20, y - 4, 7, 5, "#2b2730")
            + oval(x + 17, y - 10, 6, 3, "#dfeaf5", -30)
            + oval(x + 24, y - 10, 6, 3, "#dfeaf5", 20)
        )
    if meal == "berry":
        return (
            line(f"M{x},{y} L{x + 8},{y - 8}", "#4f7a35", 2)
            + dot(x + 2, y + 4, 6, "#c22a4a")
            + dot(x + 11, y + 1, 5.4, "#d9385a")
            + dot(x, y + 2, 1.6, "#ffd0d8")
        )
    if meal == "fish":
        return group(
            oval(0, 0, 14, 6.4, "#a9c0d6")
            + polygon([(-11, 0), (-22, -7), (-22, 7)], "#7f9bb8")
            + dot(8, -1.6, 1.6, "#1a1f2b"),
            f"translate({x + 3} {y + 4}) rotate(-24)",
        )
    if meal == "leaf":
        return leaf(x - 4, y + 4, 34, -14, "#5bb04a") + dot(x + 12, y - 4, 3.4, "#d9f2c2")
    if meal == "flower":
        petals = "".join(
            dot(x + 10 + 8 * math.cos(a), y + 10 + 8 * math.sin(a), 5.6, "#ff7fb0")
            for a in (0.3, 1.5, 2.8, 4.1, 5.3)
        )
        return (
            line(f"M{x + 10},{y + 10} L{x + 14},{-y / 50:.0f}", "#3f8a3c", 3)
            + petals
            + dot(x + 10, y + 10, 5, "#ffd23f")
            + line(f"M{x - 2},{y} L{x + 9},{y + 8}", "#2b2430", 1.8)
        )
    return line(f"M{x - 2},{y} q7,-9 12,0 t12,-2", "#e8838f", 4.6)


def eggs(figure: Figure, plan: str) -> str:
    """A clutch in front of the animal."""
    x, y = figure.front
    jelly = plan in ("hopper", "fish", "snail", "spider")
    tone = "#dff3f7" if jelly else "#f6efdd"
    clutch = oval(x, y + 1, 27, 6, "#a5825a" if not jelly else "#7fb9c4", opacity=0.8)
    for dx, dy in ((-16, -6), (-5, -7), (7, -7), (17, -5), (-9, -15), (2, -17), (12, -14)):
        clutch += oval(
            x + dx, y + dy, 6.6, 8 if not jelly else 6.6, tone, stroke="#8c7f6a", stroke_width=0.9
        )
        clutch += (
            dot(x + dx, y + dy, 2.4, "#3a3340")
            if jelly
            else dot(x + dx - 2, y + dy - 3, 1.6, "#c9a98a")
        )
    return clutch


def hackles(figure: Figure) -> str:
    """Raised spikes along the back of a threatened animal."""
    spikes = ""
    for number, (x, y) in enumerate(figure.ridge):
        lean = (number - len(figure.ridge) / 2) * 2.4
        spikes += polygon(
            [(x - 5, y + 4), (x + lean, y - 20), (x + 5, y + 4)],
            "#d63b2f",
            stroke="#7d1f2c",
            stroke_width=1,
        )
    return spikes


def tag(figure: Figure, plan: str) -> str:
    """A tracking collar with a transmitter, or a numbered plate on animals without a neck."""
    if figure.collar[0] == 0:
        x, y = figure.back
        return dot(x, y + 9, 10, "#ffffff", stroke="#e4312b", stroke_width=3) + line(
            f"M{x - 3},{y + 6} l3,-2 l0,9", "#1a1f2b", 2
        )
    x, y = figure.neck
    half, tall, lean = figure.collar
    if plan in ("songbird", "wader"):
        return (
            box(x - 4.5, y - 6, 9, 12, "#ff2f6d", 2)
            + line(f"M{x - 4},{y} l8,0", "#ffffff", 2)
            + _transmitter(figure.back[0], figure.back[1] + 4)
        )
    return group(
        box(-half, -tall, half * 2, tall * 2, "#ff2f6d", half * 0.6),
        f"translate({x} {y}) rotate({lean})",
    ) + _transmitter(x, y - tall)


def _transmitter(x: float, y: float) -> str:
    return (
        line(f"M{x},{y} L{x - 14},{y - 24}", "#15181f", 2)
        + box(x - 8, y - 5, 16, 10, "#15181f", 3)
        + dot(x + 4, y, 2.4, "#53ff8a")
    )


def condition(figure: Figure, name: str, rng: random.Random) -> str:
    """A wound, bald patches, mites, or the cleaner bird that rides on the animal."""
    x, y = figure.side
    if name == "wounded":
        gash = path(
            f"M{x - 15},{y - 6} Q{x},{y - 13} {x + 16},{y + 5} Q{x},{y + 1} {x - 15},{y - 6} Z",
            "#a30f1f",
        )
        return (
            gash
            + line(
                f"M{x - 10},{y - 10} l5,9 M{x - 1},{y - 11} l5,10 M{x + 8},{y - 7} l4,9",
                "#f7c9c9",
                1.7,
            )
            + line(f"M{x - 2},{y - 1} l0,11 M{x + 7},{y + 2} l0,7", "#c21528", 2.6)
        )
    if name == "bald patches":
        spots = ((-18, -6, 9), (2, 4, 10), (16, -9, 7), (-4, -14, 6))
        return "".join(
            oval(x + dx, y + dy, r, r * 0.72, "#e7a6a0", 12, stroke="#b7635f", stroke_width=1.4)
            + dot(x + dx + 1, y + dy, 1.4, "#b7635f")
            for dx, dy, r in spots
        )
    if name == "mites":
        places = ((-20, -6), (-12, 6), (-4, -12), (4, 3), (12, -8), (20, 4), (-26, 4), (26, -4))
        bugs = ""
        for dx, dy in places:
            bugs += line(f"M{x + dx - 5},{y + dy - 3} l10,6 m0,-6 l-10,6", "#5c0a12", 1) + oval(
                x + dx, y + dy, 3.9, 3.3, "#ff3b30", stroke="#5c0a12", stroke_width=0.9
            )
        return bugs
    if name == "cleaner bird":
        bx, by = figure.back
        return group(
            line("M-2,-6 L-3,0 M3,-6 L3,0", "#d98a2b", 1.8)
            + path("M-12,-11 L-28,-8 L-26,-3 L-10,-6 Z", "#1f3b57")
            + path(
                "M-14,-10 C-12,-22 2,-20 5,-26 C9,-33 21,-31 20,-22 C19,-10 4,-3 -6,-4 C-12,-5 -14,-8 -14,-10 Z",
                "#35c2e8",
            )
            + path("M18,-22 C10,-12 2,-9 -4,-4 C8,-3 18,-10 18,-22 Z", "#ffffff")
            + path("M19,-27 L29,-23 L19,-21 Z", "#ffb52e")
            + dot(14, -25, 2.1, "#10131c"),
            f"translate({bx + rng.uniform(-3, 3):.1f} {by + 3:.1f}) scale(1.12)",
        )
    return ""


def object_behind(ink: Ink, name: str, ground: float, rng: random.Random) -> str:
    """What stands behind the animals: a fence, a camera trap, a burrow or a web."""
    side = rng.choice((rng.uniform(16, 34), rng.uniform(190, 208)))
    if name == "fence":
        rails = box(-4, ground - 50, SIZE + 8, 6, "#b98d5f") + box(
            -4, ground - 26, SIZE + 8, 6, "#a97d50"
        )
        posts = "".join(
            box(x, ground - 66, 10, 70, ink.fade("#cda173", "#8a6139"), 2)
            for x in range(8, SIZE, 40)
        )
        wires = line(f"M-4,{ground - 62} L{SIZE + 4},{ground - 62}", "#5b6470", 1.2)
        return wires + rails + posts
    if name == "camera trap":
        post = box(side - 5, ground - 96, 10, 102, ink.fade("#8a6a48", "#5f4630"), 2)
        case = box(
            side - 18,
            ground - 92,
            36,
            42,
            ink.fade("#6c7a4a", "#3f4a2c"),
            5,
            stroke="#23291a",
            stroke_width=1.6,
        )
        return (
            post
            + case
            + dot(side, ground - 64, 9, "#12161c")
            + dot(side, ground - 64, 5, "#3a5a86")
            + dot(side + 2, ground - 66, 1.8, "#ffffff")
            + box(side - 10, ground - 85, 20, 7, "#20261a", 2)
            + dot(side + 12, ground - 55, 2.6, "#ff3b30")
        )
    if name == "burrow":
        x = rng.choice((rng.uniform(34, 62), rng.uniform(162, 190)))
        mound = path(
            f"M{x - 52:.0f},{ground + 4} C{x - 44:.0f},{ground - 62} {x + 44:.0f},{ground - 62} {x + 52:.0f},{ground + 4} Z",
            ink.fade("#a5794d", "#6b4a2e"),
        )
        return mound + path(
            f"M{x - 27:.0f},{ground + 2} C{x - 27:.0f},{ground - 42} {x + 27:.0f},{ground - 42} {x + 27:.0f},{ground + 2} Z",
            "#1d130d",
        )
    if name == "web":
        return _web(rng)
    return ""


def _web(rng: random.Random) -> str:
    cx, cy = rng.uniform(86, 138), rng.uniform(72, 92)
    angles = [math.tau * step / 12 for step in range(12)]
    spokes = "".join(
        f"M{cx:.0f},{cy:.0f} L{cx + 96 * math.cos(a):.0f},{cy + 84 * math.sin(a):.0f} "
        for a in angles
    )
    rings = ""
    for r in (16, 30, 46, 62, 78):
        ring = [(cx + r * math.cos(a), cy + r * 0.88 * math.sin(a)) for a in (*angles, 0.0)]
        rings += f"M{ring[0][0]:.1f},{ring[0][1]:.1f} "
        for (x1, y1), (x2, y2) in itertools.pairwise(ring):
            mx, my = (x1 + x2) / 2, (y1 + y2) / 2
            rings += f"Q{mx + (cx - mx) * 0.12:.1f},{my + (cy - my) * 0.12:.1f} {x2:.1f},{y2:.1f} "
    dew = "".join(
        dot(cx + r * math.cos(a), cy + r * 0.88 * math.sin(a), 1.7, "#ffffff")
        for r in (30, 46, 62)
        for a in angles[::2]
    )
    return (
        line(spokes, "#ffffff", 1.3, opacity=0.85) + line(rings, "#ffffff", 1.2, opacity=0.85) + dew
    )


def nest(x: float, y: float, width: float) -> str:
    """The cup of twigs that an animal stands in, drawn over its feet."""
    cup = path(
        f"M{x - width:.0f},{y - 13:.0f} C{x - width * 0.8:.0f},{y + 17:.0f} {x + width * 0.8:.0f},{y + 17:.0f} {x + width:.0f},{y - 13:.0f} C{x + width * 0.5:.0f},{y - 5:.0f} {x - width * 0.5:.0f},{y - 5:.0f} {x - width:.0f},{y - 13:.0f} Z",
        "#8f6538",
    )
    twigs = ""
    steps = 15
    for step in range(steps):
        px = x - width + 2 * width * step / (steps - 1)
        drop = 12 * (1 - ((px - x) / width) ** 2)
        tone = ("#c39a5c", "#5f4122", "#a97d45")[step % 3]
        twigs += line(
            f"M{px - 12:.0f},{y - 11 + drop * 0.3:.0f} l24,{(step % 5) * 2 - 4}", tone, 2.2
        )
        twigs += line(
            f"M{px - 10:.0f},{y + drop * 0.6 - 3:.0f} l20,{4 - (step % 4) * 3}", tone, 1.8
        )
    return cup + twigs


def object_front(ink: Ink, name: str, ground: float, rng: random.Random) -> str:
    """What lies or hangs before the animals: a net, a bottle or a measuring scale."""
    if name == "bottle":
        x, turn = rng.choice((rng.uniform(20, 40), rng.uniform(168, 190))), rng.uniform(-16, 16)
        glass = ink.fade("#e9fbff/0.95", "#8fd0e0/0.9")
        bottle = path(
            "M-26,-9 L10,-9 C16,-9 18,-4.5 25,-4.5 L31,-4.5 L31,4.5 L25,4.5 C18,4.5 16,9 10,9 L-26,9 C-30,9 -30,-9 -26,-9 Z",
            glass,
            stroke="#4e93a8",
            stroke_width=1.6,
        )
        bottle += (
            box(-17, -9, 20, 18, "#e4312b")
            + box(-17, -2.5, 20, 5, "#ffffff")
            + box(30, -5, 7, 10, "#e4312b", 1.5)
            + line("M-24,-5.5 L8,-5.5", "#ffffff", 1.6)
        )
        return group(bottle, f"translate({x:.0f} {ground + 21:.0f}) rotate({turn:.0f}) scale(1.25)")
    if name == "ruler":
        y = min(ground + 24, 206)
        bar = box(12, y - 8, 200, 19, "#fffef6", 1, stroke="#3a3a44", stroke_width=1)
        for step in range(10):
            if step % 2 == 0:
                bar += box(12 + step * 20, y + 2, 20, 9, "#15151c")
            bar += line(
                f"M{12 + step * 20},{y - 8} l0,{8 if step % 5 == 0 else 5} m10,-5 l0,-1",
                "#15151c",
                1.3,
            )
        return bar
    if name == "net":
        mesh = "".join(
            f"M{x},{ground - 130} l-58,158 M{x - 60},{ground - 130} l58,158 "
            for x in range(0, SIZE + 90, 17)
        )
        rope = line(
            f"M-4,{ground - 114} Q112,{ground - 96} {SIZE + 4},{ground - 116}", "#2fa866", 5
        )
        floats = "".join(
            oval(x, ground - 107 + 5 * math.sin(x), 8, 6, "#ff8a1f") for x in range(18, SIZE, 38)
        )
        return line(mesh, "#2fa866", 1.5, opacity=0.85) + rope + floats
    return ""


def clutter(habitat: str, amount: int, rng: random.Random, underwater: bool) -> str:
    """Foreground plants; ``amount`` 0 to 3 says how much they hide."""
    if habitat == "specimen drawer":
        return ""
    front = ""
    if underwater:
        for _ in range(amount * 2):
            x, h, sway = rng.uniform(-4, 228), rng.uniform(34, 80), rng.uniform(-14, 14)
            front += line(
                f"M{x:.0f},228 C{x + sway:.0f},{228 - h * 0.4:.0f} {x - sway:.0f},{228 - h * 0.7:.0f} {x + sway:.0f},{228 - h:.0f}",
                rng.choice(("#1d6b4f", "#2c8a5b", "#185a52")),
                5,
            )
        return front
    if habitat in ("meadow", "pond", "beach", "rock"):
        tones = ("#3f8a35", "#57a343", "#2f6f2f")
        if habitat == "beach":
            tones = ("#a9b26a", "#8a9a55", "#c4c284")
        return blades(rng, 230, 10 + amount * 12, 26 + amount * 8, tones, 4.4)
    if habitat == "snow":
        for _ in range(10 + amount * 6):
            front += dot(
                rng.uniform(0, SIZE),
                rng.uniform(0, SIZE),
                rng.uniform(1.4, 3),
                "#ffffff",
                opacity=0.9,
            )
        return front
    for _ in range(2 + amount * 2):
        left = rng.random() < 0.5
        x = rng.uniform(-8, 24) if left else rng.uniform(200, 232)
        y = rng.uniform(176, 226)
        turn = rng.uniform(-60, -10) if left else rng.uniform(190, 240)
        tone = rng.choice(("#2f7a3a", "#3f9145", "#255f37"))
        front += _fern(x, y, rng.uniform(30, 46 + amount * 4), turn, tone)
    return front


def _fern(x: float, y: float, length: float, turn: float, fill: str) -> str:
    frond = line(f"M0,0 L{length:.0f},0", darker(fill, 0.2), 1.8)
    steps = 7
    for step in range(1, steps):
        at = length * step / steps
        reach = length * 0.26 * (1 - step / (steps + 1.5))
        frond += oval(at + 3, -reach * 0.6, reach, reach * 0.34, fill, -52) + oval(
            at + 3, reach * 0.6, reach, reach * 0.34, mix(fill, "#ffffff", 0.1), 52
        )
    return group(frond, f"translate({x:.0f} {y:.0f}) rotate({turn:.0f})")
