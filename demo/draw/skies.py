# ruff: noqa: E501  (path data stays on one line)
"""Light and distance: skies, hills, trees and open water behind every place."""

from __future__ import annotations

import random

from demo.draw.ink import SIZE, Ink, box, dot, group, mix, oval, path, polygon

SKIES = {
    "day": ("#6fc3f2", "#bfe6fa", "#f4fbff"),
    "sunset": ("#4b3f86", "#d9627f", "#ffb25a", "#ffe3a0"),
    "night": ("#070f2b", "#142a5c", "#35548f"),
    "fog": ("#c3ced3", "#dbe2e4", "#eceff0"),
}
WATER_SKIES = {
    "day": ("#5fd4e6", "#1f93c4", "#0d5d93"),
    "sunset": ("#ffb978", "#b46a8c", "#3d4a86"),
    "night": ("#1b3f74", "#0b2350", "#050f2c"),
    "fog": ("#b9ccc6", "#92ada8", "#6d8c8a"),
}
HAZE = {"day": "#d6ecf7", "sunset": "#e88a7a", "night": "#1d3768", "fog": "#dfe5e7"}
VEIL = {
    "day": ("#ffffff", 0.0),
    "sunset": ("#ff9a56", 0.30),
    "night": ("#1b2c6b", 0.60),
    "fog": ("#dfe5e7", 0.52),
}
"""The colour and strength that the light lays over the scenery."""
CAST = {
    "day": ("#ffffff", 0.0),
    "sunset": ("#ff8f4a", 0.13),
    "night": ("#22357a", 0.30),
    "fog": ("#e3e8ea", 0.22),
}
"""The same for the animals, weaker so that their colours stay legible."""


def celestial(ink: Ink, light: str, rng: random.Random) -> str:
    x = rng.uniform(36, 188)
    if light == "day":
        clouds = ""
        for _ in range(rng.randint(1, 3)):
            cx, cy = rng.uniform(10, 214), rng.uniform(16, 64)
            clouds += group(
                oval(cx, cy, 26, 7, "#ffffff")
                + oval(cx - 8, cy - 6, 13, 9, "#ffffff")
                + oval(cx + 9, cy - 4, 12, 7, "#ffffff"),
                opacity=0.85,
            )
        sun = dot(x, 34, 34, ink.glow("#fff7cf/0.95", "#fff2b8/0.35", "#ffffff/0")) + dot(
            x, 34, 12, "#fff3b0"
        )
        return sun + clouds
    if light == "sunset":
        halo = ink.glow("#fff1b8/1", "#ffcf7a/0.55", "#ff9a5a/0")
        bars = "".join(
            oval(
                rng.uniform(20, 204),
                rng.uniform(30, 80),
                rng.uniform(26, 50),
                2.6,
                "#ffd9b0",
                opacity=0.55,
            )
            for _ in range(4)
        )
        return dot(x, 98, 62, halo) + dot(x, 98, 19, "#fff0b0") + bars
    if light == "night":
        stars = "".join(
            dot(
                rng.uniform(2, 222),
                rng.uniform(2, 104),
                rng.choice((0.6, 0.8, 1.1, 1.6)),
                "#ffffff",
                opacity=f"{rng.uniform(0.5, 1):.2f}",
            )
            for _ in range(46)
        )
        moon = dot(x, 34, 40, ink.glow("#e8f0ff/0.75", "#b9cdff/0.22", "#b9cdff/0"))
        moon += (
            dot(x, 34, 15, "#f6f3dc")
            + dot(x - 5, 31, 3, "#dcd8bd")
            + dot(x + 4, 38, 2.2, "#dcd8bd")
        )
        return stars + moon
    return dot(x, 46, 30, ink.glow("#ffffff/0.9", "#ffffff/0"))


def ridge(rng: random.Random, base: float, height: float, fill: str, peaks: int) -> str:
    d = f"M-4,{SIZE} L-4,{base:.0f}"
    step = (SIZE + 8) / peaks
    for number in range(peaks):
        left = -4 + number * step
        top = base - rng.uniform(0.3, 1.0) * height
        d += f" C{left + step * 0.3:.0f},{top:.0f} {left + step * 0.7:.0f},{top:.0f} {left + step:.0f},{base - rng.uniform(0, 0.25) * height:.0f}"
    return path(d + f" L{SIZE + 4},{SIZE} Z", fill)


def conifers(rng: random.Random, base: float, fill: str, count: int, height: float) -> str:
    trees = ""
    for _ in range(count):
        x, h = rng.uniform(-6, SIZE + 6), height * rng.uniform(0.65, 1.25)
        w = h * 0.28
        trees += path(
            f"M{x:.0f},{base - h:.0f} L{x + w * 0.6:.0f},{base - h * 0.55:.0f} L{x + w * 0.3:.0f},{base - h * 0.55:.0f} "
            f"L{x + w:.0f},{base:.0f} L{x - w:.0f},{base:.0f} L{x - w * 0.3:.0f},{base - h * 0.55:.0f} L{x - w * 0.6:.0f},{base - h * 0.55:.0f} Z",
            fill,
        )
    return trees


def blades(
    rng: random.Random,
    y: float,
    count: int,
    height: float,
    fills: tuple[str, ...],
    width: float = 3,
) -> str:
    """Grass blades with their feet at ``y``."""
    grass = ""
    for _ in range(count):
        x, h = rng.uniform(-4, SIZE + 4), height * rng.uniform(0.5, 1.2)
        lean = rng.uniform(-0.4, 0.4) * h
        grass += path(
            f"M{x - width / 2:.1f},{y:.1f} Q{x:.1f},{y - h * 0.6:.1f} {x + lean:.1f},{y - h:.1f} Q{x + width * 0.8:.1f},{y - h * 0.5:.1f} {x + width / 2:.1f},{y:.1f} Z",
            rng.choice(fills),
        )
    return grass


def far(ink: Ink, light: str, rng: random.Random, first: str, second: str) -> str:
    haze = HAZE[light]
    sky = box(0, 0, SIZE, SIZE, ink.fade(*SKIES[light])) + celestial(ink, light, rng)
    hills = ridge(rng, 112, 44, mix(first, haze, 0.62), 3)
    return sky + hills + ridge(rng, 128, 30, mix(second, haze, 0.36), 4)


def underwater(ink: Ink, light: str, rng: random.Random) -> str:
    back = box(0, 0, SIZE, SIZE, ink.fade(*WATER_SKIES[light]))
    if light == "night":
        back += dot(112, -6, 70, ink.glow("#cfe0ff/0.5", "#cfe0ff/0"))
        back += "".join(
            dot(
                rng.uniform(0, SIZE),
                rng.uniform(0, 180),
                rng.uniform(0.8, 1.8),
                "#7df0e0",
                opacity=0.8,
            )
            for _ in range(26)
        )
    elif light != "fog":
        for x in (30.0, 84.0, 136.0, 190.0):
            x += rng.uniform(-14, 14)
            back += polygon(
                [(x, -4), (x + 18, -4), (x - 6, 170), (x - 44, 170)],
                ink.fade("#ffffff/0.34", "#ffffff/0"),
            )
    for _ in range(10):
        x, y, r = rng.uniform(0, SIZE), rng.uniform(6, 180), rng.uniform(1.4, 4)
        back += dot(x, y, r, "none", stroke="#ffffff", stroke_width=0.9, opacity=0.7)
    return back
