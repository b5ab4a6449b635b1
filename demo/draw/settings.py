# ruff: noqa: E501  (path data stays on one line)
"""Places: the grounds that animals are seen on, and all that is behind them."""

from __future__ import annotations

import random
from dataclasses import dataclass

from demo.draw.ink import (
    SIZE,
    Ink,
    box,
    dot,
    group,
    lighter,
    line,
    mix,
    oval,
    path,
    polygon,
)
from demo.draw.skies import (
    HAZE,
    SKIES,
    WATER_SKIES,
    blades,
    celestial,
    conifers,
    far,
    ridge,
    underwater,
)


@dataclass(frozen=True)
class Setting:
    """A drawn place: what is behind the animals, and where they stand (y of the ground)."""

    behind: str
    ground: float
    underwater: bool = False
    spread: float = 1.0


def _rock(ink: Ink, light: str, rng: random.Random) -> Setting:
    back = far(ink, light, rng, "#7d93a6", "#6f8a78")
    back += box(0, 138, SIZE, 90, ink.fade("#93a06d", "#5d6c45"))
    stone = ink.fade("#c3c3c0", "#95979a", "#5c6068")
    left, right = rng.uniform(2, 16), rng.uniform(206, 222)
    top = 166
    back += path(
        f"M{left - 10:.0f},226 L{left:.0f},190 L{left + 16:.0f},{top + 4} L{left + 40:.0f},{top - 3} L112,{top - 5} "
        f"L{right - 44:.0f},{top - 2} L{right - 14:.0f},{top + 6} L{right:.0f},192 L{right + 12:.0f},226 Z",
        stone,
    )
    back += polygon(
        [
            (left + 16, top + 4),
            (left + 40, top - 3),
            (112, top - 5),
            (right - 44, top - 2),
            (right - 14, top + 6),
            (150, top + 14),
            (70, top + 15),
        ],
        "#d9d8d2",
        opacity=0.8,
    )
    for _ in range(4):
        x, y = rng.uniform(30, 190), rng.uniform(186, 214)
        back += line(
            f"M{x:.0f},{y:.0f} l{rng.uniform(6, 14):.0f},{rng.uniform(4, 12):.0f} l{rng.uniform(-6, 8):.0f},10",
            "#4a4e57",
            1.6,
            opacity=0.6,
        )
    for _ in range(5):
        back += oval(
            rng.uniform(20, 204),
            rng.uniform(188, 216),
            rng.uniform(4, 9),
            3,
            "#c7b45a",
            opacity=0.75,
        )
    return Setting(back, 172)


def _pond(ink: Ink, light: str, rng: random.Random) -> Setting:
    back = far(ink, light, rng, "#7fa58f", "#4f8a5a")
    back += box(0, 132, SIZE, 96, ink.fade("#8fd3de", "#3f95ac", "#1d5f7c"))
    for _ in range(7):
        y = rng.uniform(140, 220)
        back += oval(rng.uniform(0, SIZE), y, rng.uniform(14, 34), 1.3, "#e4fbff", opacity=0.55)
    for _ in range(5):
        x, y = rng.uniform(6, 218), rng.uniform(142, 160)
        back += _lily(x, y, rng.uniform(9, 14), rng.random() < 0.4)
    for side in (rng.uniform(0, 22), rng.uniform(200, 222)):
        for _ in range(4):
            x = side + rng.uniform(-10, 10)
            top = rng.uniform(74, 104)
            back += line(
                f"M{x:.0f},150 Q{x + 2:.0f},120 {x + rng.uniform(-4, 4):.0f},{top:.0f}",
                "#5d8a3c",
                2.4,
            )
            back += box(x - 2.6, top - 4, 5.6, 17, "#7a4a2a", 2.8)
    back += oval(112, 188, 98, 17, "#1d6a4c", opacity=0.35) + oval(
        112, 184, 96, 17, ink.fade("#93cf63", "#4f9a45")
    )
    back += line(
        "M112,184 L40,178 M112,184 L64,196 M112,184 L160,196 M112,184 L186,178 M112,184 L112,170",
        "#3f8a3c",
        1.4,
        opacity=0.6,
    )
    return Setting(back, 184)


def _lily(x: float, y: float, r: float, bloom: bool) -> str:
    pad = oval(x, y, r, r * 0.36, "#69b04b") + polygon(
        [(x, y), (x + r, y - 2), (x + r, y + 2)], "#4aa0b4"
    )
    if bloom:
        pad += "".join(
            oval(x + dx, y - 4, 2.4, 4.6, "#ffd0e2", turn)
            for dx, turn in ((-3, -30), (0, 0), (3, 30))
        )
    return pad


def _meadow(ink: Ink, light: str, rng: random.Random) -> Setting:
    back = far(ink, light, rng, "#8fb79a", "#74b05c")
    back += ridge(rng, 146, 16, "#86c455", 3) + box(
        0, 146, SIZE, 80, ink.fade("#86c455", "#4a9138")
    )
    back += blades(rng, 172, 40, 20, ("#9ad365", "#6fb548", "#5aa23f"))
    for _ in range(16):
        x, y = rng.uniform(0, SIZE), rng.uniform(150, 206)
        petal = rng.choice(("#ffffff", "#ffd84d", "#f48fb6", "#b49af0"))
        back += line(f"M{x:.0f},{y:.0f} l0,8", "#3f7f33", 1.4)
        back += "".join(
            dot(x + dx, y + dy, 2, petal) for dx, dy in ((-2.2, 0), (2.2, 0), (0, -2.2), (0, 2.2))
        ) + dot(x, y, 1.4, "#f5a623")
    return Setting(back, 186)


def _forest(ink: Ink, light: str, rng: random.Random) -> Setting:
    haze = HAZE[light]
    back = box(0, 0, SIZE, SIZE, ink.fade(*SKIES[light])) + celestial(ink, light, rng)
    back += box(0, 0, SIZE, 150, mix("#2f6a4a", haze, 0.35), opacity=0.55)
    for depth, tone, width in ((0.55, "#5d7a5e", 9), (0.3, "#4a5f46", 14), (0.08, "#4b382c", 22)):
        shade = mix(tone, haze, depth)
        for _ in range(4 if width < 20 else 2):
            x = (
                rng.uniform(-6, SIZE - 4)
                if width < 20
                else rng.choice((rng.uniform(-12, 24), rng.uniform(184, 214)))
            )
            back += path(
                f"M{x:.0f},0 L{x + width:.0f},0 L{x + width + 3:.0f},164 L{x - 3:.0f},164 Z", shade
            )
    back += "".join(
        oval(
            rng.uniform(0, SIZE),
            rng.uniform(-6, 22),
            rng.uniform(22, 44),
            14,
            mix(rng.choice(("#2f7a45", "#3f8f4a", "#276a44")), haze, 0.12),
        )
        for _ in range(9)
    )
    back += ridge(rng, 150, 12, "#6a5236", 3) + box(
        0, 150, SIZE, 76, ink.fade("#6a5236", "#3d2c1f")
    )
    for _ in range(44):
        back += oval(
            rng.uniform(0, SIZE),
            rng.uniform(152, 222),
            rng.uniform(4, 8),
            2.4,
            rng.choice(("#b5652b", "#d08a35", "#8f4a28", "#a57a3a", "#6f8a3c")),
            rng.uniform(-40, 40),
        )
    for _ in range(2):
        x, y = rng.uniform(8, 216), rng.uniform(154, 168)
        back += box(x - 2, y, 4, 10, "#f1e6d2", 2) + path(
            f"M{x - 8:.0f},{y + 2:.0f} C{x - 7:.0f},{y - 8:.0f} {x + 7:.0f},{y - 8:.0f} {x + 8:.0f},{y + 2:.0f} Z",
            "#c8402f",
        )
    return Setting(back, 188)


def _beach(ink: Ink, light: str, rng: random.Random) -> Setting:
    haze = HAZE[light]
    back = box(0, 0, SIZE, 124, ink.fade(*SKIES[light])) + celestial(ink, light, rng)
    back += box(0, 108, SIZE, 60, ink.fade(mix("#2f9ac4", haze, 0.25), "#7fd6de"))
    for crest in (116, 124, 134):
        back += line(
            f"M{rng.uniform(-20, 40):.0f},{crest} q20,-4 40,0 t40,0 t40,0",
            "#ffffff",
            1.3,
            opacity=0.6,
        )
    back += path(
        "M-4,152 C40,138 80,158 120,148 S200,140 230,150 L230,228 L-4,228 Z", "#ffffff", opacity=0.9
    )
    back += path(
        "M-4,157 C40,143 80,163 120,153 S200,145 230,155 L230,228 L-4,228 Z",
        ink.fade("#f7e2ae", "#dfb873"),
    )
    for _ in range(26):
        back += dot(
            rng.uniform(0, SIZE),
            rng.uniform(162, 222),
            rng.uniform(0.7, 1.8),
            rng.choice(("#c99a5b", "#fff4d6", "#b78950")),
        )
    for _ in range(3):
        x, y = rng.uniform(8, 216), rng.uniform(164, 216)
        back += path(f"M{x:.0f},{y:.0f} l-6,-8 q6,-5 12,0 Z", "#ffd3c4") + line(
            f"M{x:.0f},{y:.0f} l-3,-9 m3,9 l0,-10 m0,10 l3,-9", "#e59a86", 0.9
        )
    return Setting(back, 186)


def _snow(ink: Ink, light: str, rng: random.Random) -> Setting:
    haze = HAZE[light]
    back = box(0, 0, SIZE, SIZE, ink.fade(*SKIES[light])) + celestial(ink, light, rng)
    back += ridge(rng, 120, 60, mix("#a9c3d8", haze, 0.35), 3)
    back += conifers(rng, 142, mix("#3f6a66", haze, 0.3), 9, 52)
    back += ridge(rng, 146, 18, "#eef6fc", 3) + box(
        0, 148, SIZE, 80, ink.fade("#f3f9fd", "#c4dbec")
    )
    for _ in range(4):
        back += oval(
            rng.uniform(0, SIZE),
            rng.uniform(162, 216),
            rng.uniform(24, 44),
            5,
            "#b5d0e4",
            opacity=0.6,
        )
    back += "".join(
        dot(
            rng.uniform(0, SIZE),
            rng.uniform(0, 170),
            rng.choice((1.1, 1.6, 2.2)),
            "#ffffff",
            opacity=0.9,
        )
        for _ in range(30)
    )
    return Setting(back, 186)


def _branch(ink: Ink, light: str, rng: random.Random) -> Setting:
    haze = HAZE[light]
    back = box(0, 0, SIZE, SIZE, ink.fade(*SKIES[light])) + celestial(ink, light, rng)
    back += "".join(
        dot(
            rng.uniform(-10, 234),
            rng.uniform(120, 240),
            rng.uniform(26, 50),
            mix(rng.choice(("#5fa457", "#7cbc62", "#478f57")), haze, 0.45),
            opacity=0.8,
        )
        for _ in range(9)
    )
    y = 168
    bark = ink.fade("#a97a50", "#7d5436", "#4d3322")
    back += path(
        f"M-6,{y + 14} C50,{y - 2} 110,{y + 2} 230,{y - 8} L230,{y + 12} C150,{y + 22} 70,{y + 20} -6,{y + 40} Z",
        bark,
    )
    back += line(f"M10,{y + 16} C60,{y + 6} 120,{y + 10} 190,{y + 2}", "#c79a6a", 1.8, opacity=0.7)
    back += line(
        f"M176,{y + 4} C190,{y - 20} 196,{y - 34} 214,{y - 48} M40,{y + 22} C30,{y + 38} 26,{y + 44} 14,{y + 54}",
        "#6d4a30",
        6,
    )
    for x, yy in (
        (206, y - 44),
        (216, y - 30),
        (198, y - 26),
        (222, y - 54),
        (14, y + 50),
        (26, y + 44),
        (8, y + 34),
        (150, y + 20),
        (96, y + 24),
    ):
        back += leaf(
            x + rng.uniform(-4, 4),
            yy + rng.uniform(-4, 4),
            rng.uniform(12, 18),
            rng.uniform(-80, 80),
            rng.choice(("#5fae48", "#86c455", "#3f9145")),
        )
    return Setting(back, y + 2)


def leaf(x: float, y: float, length: float, turn: float, fill: str) -> str:
    """A pointed leaf with a midrib, its stalk at the given point."""
    half = length * 0.3
    blade = path(
        f"M0,0 Q{length * 0.4:.1f},{-half:.1f} {length:.1f},0 Q{length * 0.4:.1f},{half:.1f} 0,0 Z",
        fill,
    )
    rib = line(f"M0,0 L{length * 0.85:.1f},0", lighter(fill, 0.35), 1)
    return group(blade + rib, f"translate({x:.1f} {y:.1f}) rotate({turn:.0f})")


def _reef(ink: Ink, light: str, rng: random.Random) -> Setting:
    back = underwater(ink, light, rng)
    back += ridge(rng, 176, 46, mix("#2c6d8a", WATER_SKIES[light][1], 0.5), 3)
    back += path(
        "M-4,196 C50,184 100,200 150,190 S210,186 230,194 L230,228 L-4,228 Z",
        ink.fade("#e9cf9a", "#b9905c"),
    )
    for _ in range(7):
        x, h = (
            rng.choice((rng.uniform(0, 60), rng.uniform(160, 224), rng.uniform(0, 224))),
            rng.uniform(24, 52),
        )
        tone = rng.choice(("#f2617a", "#ff9a4d", "#b06fe0", "#f7c948", "#e84f9a"))
        back += line(
            f"M{x:.0f},206 L{x:.0f},{206 - h:.0f} M{x:.0f},{206 - h * 0.35:.0f} l-10,-{h * 0.4:.0f} M{x:.0f},{206 - h * 0.5:.0f} l11,-{h * 0.34:.0f} M{x - 5:.0f},{206 - h * 0.55:.0f} l-9,-5",
            tone,
            5.6,
        )
    for _ in range(3):
        x = rng.uniform(0, 224)
        back += path(
            f"M{x - 20:.0f},212 C{x - 22:.0f},186 {x + 22:.0f},186 {x + 20:.0f},212 Z",
            rng.choice(("#d98a6a", "#8f7ac4", "#d9a84a")),
        )
    return Setting(back, 176, underwater=True)


def _seagrass(ink: Ink, light: str, rng: random.Random) -> Setting:
    back = underwater(ink, light, rng)
    back += path(
        "M-4,204 C50,196 100,208 150,200 S210,198 230,204 L230,228 L-4,228 Z",
        ink.fade("#b8b183", "#75704c"),
    )
    for _ in range(26):
        x, h = rng.uniform(-6, 230), rng.uniform(50, 140)
        sway = rng.uniform(-16, 16)
        back += line(
            f"M{x:.0f},214 C{x + sway:.0f},{214 - h * 0.4:.0f} {x - sway:.0f},{214 - h * 0.7:.0f} {x + sway * 0.7:.0f},{214 - h:.0f}",
            rng.choice(("#3f9a5a", "#2f7f52", "#67b85e", "#22694a")),
            4.2,
        )
    return Setting(back, 176, underwater=True)


def _drawer(ink: Ink, light: str, rng: random.Random) -> Setting:
    back = box(0, 0, SIZE, SIZE, ink.fade("#9a6a40", "#6d4526"))
    back += box(11, 11, 202, 202, "#5a381f", 3) + box(
        14, 14, 196, 196, ink.fade("#faf6ea", "#ece3cd"), 2
    )
    back += line("M14,14 L210,14", "#cbbd9c", 3)
    x = rng.uniform(24, 110)
    back += box(x, 180, 80, 25, "#fffefa", 1.5, stroke="#bfb396", stroke_width=1)
    for row, length in ((187, 62), (193, 52), (199, 34)):
        back += line(f"M{x + 7:.0f},{row} l{length},0", "#6d6a75", 1.5, opacity=0.75)
    back += box(x + 62, 183.5, 14, 11, "#2f3340", 1, opacity=0.8)
    return Setting(back, 146)


_PLACES = {
    "rock": _rock,
    "pond": _pond,
    "meadow": _meadow,
    "forest floor": _forest,
    "beach": _beach,
    "snow": _snow,
    "tree branch": _branch,
    "reef": _reef,
    "seagrass": _seagrass,
    "specimen drawer": _drawer,
}


def draw_setting(ink: Ink, habitat: str, light: str, rng: random.Random) -> Setting:
    """Draw the place; KeyError for an unknown habitat or light."""
    return _PLACES[habitat](ink, light, rng)
