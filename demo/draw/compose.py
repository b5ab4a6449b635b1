# ruff: noqa: E501  (path data stays on one line)
"""A whole scene: setting, animals, things, light; then its pixels."""

from __future__ import annotations

import io
import random
from collections.abc import Callable

import resvg_py
from PIL import Image

from demo.attributes import Scene
from demo.draw import props
from demo.draw.amphibians_reptiles import hopper, lizard, turtle
from demo.draw.birds_fishes import fish, songbird, wader
from demo.draw.ink import SIZE, Figure, Ink, Look, box, dot, group, oval
from demo.draw.mammals_insects import beetle, butterfly, fox
from demo.draw.settings import Setting, draw_setting
from demo.draw.skies import CAST, VEIL
from demo.draw.snails_spiders import snail, spider

JPEG_QUALITY = 90

_PLANS: dict[str, Callable[[Ink, Look], Figure]] = {
    "hopper": hopper,
    "songbird": songbird,
    "wader": wader,
    "beetle": beetle,
    "butterfly": butterfly,
    "fox": fox,
    "turtle": turtle,
    "lizard": lizard,
    "fish": fish,
    "snail": snail,
    "spider": spider,
}
_TALL = {"songbird": 0.9, "wader": 0.88, "butterfly": 0.92, "fox": 0.9, "snail": 0.95}
_TILT = {"moving": -16.0, "defending": -9.0}


def _animal(ink: Ink, scene: Scene, young: bool = False) -> tuple[str, Figure]:
    kind = scene.kind
    dead = scene.habitat == "specimen drawer"
    look = Look(
        kind.morph(scene.morph),
        kind.pattern,
        kind.trait,
        "juvenile" if young else scene.sexage,
        "resting" if young else scene.behaviour,
        dead,
    )
    figure = _PLANS[kind.plan](ink, look)
    svg = figure.svg
    if young:
        return svg, figure
    if scene.behaviour == "defending" and kind.plan != "turtle":
        svg = props.hackles(figure) + svg
    svg += props.condition(figure, scene.condition, ink.rng)
    if scene.object == "tag":
        svg += props.tag(figure, kind.plan)
    if scene.behaviour == "feeding":
        svg += props.food(figure, kind.plan)
    if scene.behaviour == "carrying young":
        baby, _ = _animal(ink, scene, young=True)
        x, y = figure.back
        for dx, size in ((-16, 0.36), (16, 0.32)):
            svg += group(baby, f"translate({x + dx:.1f} {y + 8:.1f}) scale({size})")
    if scene.behaviour == "guarding eggs":
        svg += props.eggs(figure, kind.plan)
    return svg, figure


def _spots(count: int, rng: random.Random) -> list[tuple[float, float, float]]:
    """Places (x, depth, scale) for the animals, the farthest first."""
    if count == 1:
        return [(rng.uniform(100, 124), 0.0, rng.uniform(1.0, 1.16))]
    if count == 2:
        return [
            (rng.uniform(56, 66), rng.uniform(-8, -3), rng.uniform(0.70, 0.78)),
            (rng.uniform(158, 168), rng.uniform(2, 7), rng.uniform(0.74, 0.82)),
        ]
    return [
        (rng.uniform(106, 118), -26.0, rng.uniform(0.50, 0.56)),
        (rng.uniform(46, 54), rng.uniform(2, 8), rng.uniform(0.56, 0.62)),
        (rng.uniform(170, 178), rng.uniform(2, 8), rng.uniform(0.56, 0.62)),
    ]


def _herd(ink: Ink, scene: Scene, setting: Setting, rng: random.Random) -> tuple[str, str]:
    """All animals, and the cups of their nests."""
    svg, figure = _animal(ink, scene)
    dead = scene.habitat == "specimen drawer"
    count = int(scene.count)
    spots = _spots(count, rng)
    inward = rng.random() < 0.6
    animals = nests = ""
    for x, depth, scale in spots:
        scale *= _TALL.get(scene.kind.plan, 1.0) * (0.72 if scene.sexage == "juvenile" else 1.0)
        facing = rng.choice((-1, 1))
        if count > 1 and inward:
            facing = 1 if x < SIZE / 2 else -1
        y = setting.ground + depth
        lift = figure.lift * scale * 1.1
        shift = -facing * (figure.front[0] - 48) * scale * 0.4
        if scene.behaviour == "guarding eggs":
            shift -= facing * 12 * scale
        x = min(max(x + shift, 58 * scale), SIZE - 58 * scale)
        if not dead:
            wide = (46 if lift == 0 else 34) * scale
            seen = "0.38" if lift == 0 else "0.26"
            animals += oval(
                x,
                y + 1,
                wide * 1.25,
                wide * 0.2,
                ink.glow(f"#0b1220/{seen}", f"#0b1220/{seen}", "#0b1220/0"),
            )
        if setting.underwater:
            lift += (18 if scene.behaviour != "sleeping" else 2) * scale
        turn = (
            _TILT.get(scene.behaviour, 0.0) if scene.kind.plan not in ("snail", "turtle") else 0.0
        )
        squash = (
            0.8
            if scene.behaviour == "sleeping"
            and scene.kind.plan not in ("fox", "wader", "butterfly", "spider")
            else 1.0
        )
        move = f"translate({x:.1f} {y - lift:.1f}) scale({facing * scale:.3f} {scale * squash:.3f}) rotate({turn:.0f})"
        animals += group(svg, move)
        if dead:
            px, py = figure.side
            top = (x + facing * px * scale, y + (py - 8) * scale)
            animals += (
                dot(*top, 1.2, "#3b3b44")
                + box(top[0] - 0.8, top[1] - 16, 1.6, 16, "#7c7f8a")
                + dot(top[0], top[1] - 17, 3.4, "#2e6fd6")
            )
        if scene.object == "nest":
            nests += props.nest(x, y + 2, 54 * scale)
    return animals, nests


def draw(scene: Scene) -> str:
    """Return the scene as an SVG string of 224 by 224 units."""
    rng = random.Random(f"draw:{scene.draw_seed}")
    ink = Ink(rng)
    setting = draw_setting(ink, scene.habitat, scene.light, rng)
    veil, strength = VEIL[scene.light]
    cast, tint = CAST[scene.light]
    if setting.underwater:
        strength *= 0.45
    back = setting.behind + props.object_behind(ink, scene.object, setting.ground, rng)
    animals, nests = _herd(ink, scene, setting, rng)
    front = props.object_front(ink, scene.object, setting.ground, rng)
    plants = props.clutter(scene.habitat, rng.choice((0, 1, 1, 2, 3)), rng, setting.underwater)
    layers = [back]
    if strength:
        layers.append(_light(ink, scene.light, veil, strength, setting.underwater))
    if scene.light == "night" and scene.habitat != "specimen drawer":
        layers.append(
            oval(112, setting.ground - 36, 104, 76, ink.glow("#b9d2ff/0.34", "#b9d2ff/0"))
        )
    layers += [animals, nests, front, plants]
    if tint:
        layers.append(box(0, 0, SIZE, SIZE, cast, opacity=tint))
    if scene.light == "fog":
        for _ in range(4):
            layers.append(
                oval(
                    rng.uniform(0, SIZE),
                    rng.uniform(90, 214),
                    90,
                    12,
                    ink.glow("#ffffff/0.55", "#ffffff/0"),
                )
            )
    layers.append(box(0, 0, SIZE, SIZE, ink.glow("#000000/0", "#000000/0", "#0a1020/0.15")))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" width="{SIZE}" '
        f'height="{SIZE}">{ink.definitions()}{"".join(layers)}</svg>'
    )


def _light(ink: Ink, light: str, veil: str, strength: float, underwater: bool) -> str:
    if light == "fog" and not underwater:
        return box(
            0,
            0,
            SIZE,
            SIZE,
            ink.fade(
                f"{veil}/{strength + 0.2:.2f}",
                f"{veil}/{strength:.2f}",
                f"{veil}/{strength * 0.5:.2f}",
            ),
        )
    if light == "night" and not underwater:
        return box(
            0,
            96,
            SIZE,
            SIZE - 96,
            ink.fade(f"{veil}/0.2", f"{veil}/{strength}", f"{veil}/{strength}"),
        )
    if light == "sunset" and not underwater:
        return box(
            0, 84, SIZE, SIZE - 84, ink.fade(f"{veil}/0.1", f"{veil}/{strength}", "#5a2f6b/0.34")
        )
    return box(0, 0, SIZE, SIZE, veil, opacity=strength)


def render(scene: Scene, side: int = SIZE) -> Image.Image:
    """Return the scene as an RGB image of ``side`` by ``side`` pixels."""
    png = resvg_py.svg_to_bytes(
        svg_string=draw(scene), width=side, height=side, skip_system_fonts=True
    )
    return Image.open(io.BytesIO(bytes(png))).convert("RGB")


def jpeg(scene: Scene) -> bytes:
    """Return the scene as the bytes of a 224-pixel JPEG; equal scenes give equal bytes."""
    held = io.BytesIO()
    render(scene).save(held, "JPEG", quality=JPEG_QUALITY, optimize=False)
    return held.getvalue()
