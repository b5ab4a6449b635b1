"""Drawing a scene: Jinja templates in `drawings/` write the SVG, resvg turns it into pixels.

An animal's template faces right with its feet at y = 0 and is about 110 units long. Besides its
shapes it sets the points where things are attached: food at `mouth`, a tag at `neck`, young at
`back`, wounds at `side`, hackles along `ridge`, eggs at `front`; `collar` (half width, half height,
degrees of lean, or none) and `lift`, how far above the ground it moves. A habitat's template sets
`ground`, the y where animals stand.
"""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import resvg_py
from jinja2 import Environment, FileSystemLoader
from PIL import Image

from demo.scenes import SPECIMEN_HABITAT, WATER, Scene
from demo.species import read_toml

SIZE = 224
"""Side of a scene in SVG units and, at full size, in pixels."""
JPEG_QUALITY = 90

LIGHTS = read_toml("lights.toml")
STANDING = ("fence", "camera trap", "burrow", "web")
"""Objects behind the animals."""
LYING = ("net", "bottle", "ruler")
"""Objects in front of them."""
POINTS = ("mouth", "neck", "back", "side", "front", "ridge", "collar")
PLACES = {
    1: (((100, 124), (0,), (1.0, 1.16)),),
    2: (((56, 66), (-8, -3), (0.70, 0.78)), ((158, 168), (2, 7), (0.74, 0.82))),
    3: (
        ((106, 118), (-26,), (0.50, 0.56)),
        ((46, 54), (2, 8), (0.56, 0.62)),
        ((170, 178), (2, 8), (0.56, 0.62)),
    ),
}
"""Ranges of x, depth and scale by the number of animals, the farthest first."""


def jpeg(scene: Scene) -> bytes:
    """Return the scene as the bytes of a 224-pixel JPEG; equal scenes give equal bytes."""
    file = io.BytesIO()
    render(scene).save(file, "JPEG", quality=JPEG_QUALITY, optimize=False)
    return file.getvalue()


def render(scene: Scene, side: int = SIZE) -> Image.Image:
    """Return the scene as an RGB image of `side` by `side` pixels."""
    png = resvg_py.svg_to_bytes(
        svg_string=draw(scene), width=side, height=side, skip_system_fonts=True
    )
    return Image.open(io.BytesIO(bytes(png))).convert("RGB")


def draw(scene: Scene) -> str:
    """Return the scene as an SVG string of 224 by 224 units."""
    brush = _Brush(scene)
    rng = brush.rng
    habitat = brush.module(f"places/{scene.habitat}")
    edge = rng.choice((rng.uniform(16, 34), rng.uniform(190, 208)))
    things = brush.module("things", ground=habitat.ground, edge=edge)
    object_name = scene.object
    behind = str(habitat) + (_macro(things, object_name) if object_name in STANDING else "")
    before = brush.herd(habitat.ground, things) + (
        _macro(things, object_name) if object_name in LYING else ""
    )
    before += things.plants(scene.habitat, rng.choice((0, 1, 1, 2, 3)))
    return str(brush.module("scene", behind=behind, before=before, ground=habitat.ground)).strip()


class _Brush:
    """Draws the parts of one scene from one random generator."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.rng = random.Random(f"draw:{scene.draw_seed}")
        rng, defs = self.rng, Definitions()
        chance = (rng.uniform, rng.choice, rng.random, rng.randint)
        self.context: dict[str, Any] = {
            **LIGHTS[scene.light],
            "light": scene.light,
            "water": scene.habitat in WATER,
            **_by_name(*chance, defs.fade, defs.glow, defs.clip, defs.definitions),
        }

    def module(self, *names: str, **values: Any) -> Any:
        """The first of these templates that exists, rendered: its text, and the values it sets."""
        template = _templates().select_template([f"{name}.jinja" for name in names])
        return template.make_module({**self.context, **values})

    def animal(self, sexage: str, behavior: str) -> Any:
        """One animal, with the points that its template sets."""
        scene, kind = self.scene, self.scene.kind
        dead = scene.habitat == SPECIMEN_HABITAT
        male, young = sexage == "adult male", sexage == "juvenile"
        asleep = behavior == "sleeping" or dead
        body, belly, accent = kind.morphs[scene.morph]

        def eye(x: float, y: float, r: float, iris: str = "#2a1a12") -> str:
            """A bright eye with a glint, larger in the young, or a closed lid."""
            size = r * (1.25 if young else 1.0)
            if asleep:
                lid = f"M{x - size},{y} q{size},{size * 1.1} {size * 2},0"
                return line(lid, "#1a1722", max(2.0, r * 0.42))
            return (
                dot(x, y, size, "#fdfdf8")
                + dot(x + size * 0.15, y, size * 0.78, iris)
                + dot(x + size * 0.2, y, size * 0.48, "#0d0b12")
                + dot(x + size * 0.45, y - size * 0.38, size * 0.28, "#ffffff")
            )

        def speckles(points: list[tuple[float, float]], r: float) -> str:
            """The pale spots of a juvenile; nothing on adults."""
            return dots([(x, y, r) for x, y in points], "#fffbe8", opacity=0.9) if young else ""

        return self.module(
            f"animals/{kind.plan}-{behavior}",
            f"animals/{kind.plan}",
            eye=eye,
            speckles=speckles,
            body=body if male or dead else mix(body, "#8d8a80", 0.14),
            belly=belly,
            accent=accent,
            morph=scene.morph,
            pattern=kind.pattern,
            trait=kind.trait,
            male=male,
            young=young,
            dead=dead,
            asleep=asleep,
            moving=behavior == "moving",
            displaying=behavior == "displaying",
            defending=behavior == "defending",
        )

    def subject(self) -> tuple[str, Any]:
        """The animal with what it wears, carries, eats and guards, and its template's points."""
        scene = self.scene
        figure = self.animal(scene.sexage, scene.behavior)
        svg = str(figure)
        things = self.module("things", **{name: getattr(figure, name) for name in POINTS})
        if scene.behavior == "defending":
            svg = things.hackles() + svg
        if scene.condition != "healthy":
            svg += _macro(things, scene.condition)
        if scene.object == "tag":
            svg += things.tag(scene.kind.body_plan.iconic_group == "Birds")
        if scene.behavior == "feeding":
            svg += things.food(scene.kind.body_plan.meal)
        if scene.behavior == "carrying young":
            young = self.animal("juvenile", "resting")
            x, y = figure.back
            for dx, size in ((-16, 0.36), (16, 0.32)):
                svg += f'<g transform="translate({x + dx} {y + 8}) scale({size})">{young}</g>'
        if scene.behavior == "guarding eggs":
            svg += things.eggs(scene.kind.plan in ("hopper", "fish", "snail", "spider"))
        return svg, figure

    def herd(self, ground: float, things: Any) -> str:
        """All animals on their shadows, and the cups of their nests."""
        scene, rng = self.scene, self.rng
        plan, dead = scene.kind.body_plan, scene.habitat == SPECIMEN_HABITAT
        svg, figure = self.subject()
        spots = [
            [rng.uniform(*span) if span[1:] else span[0] for span in ranges]
            for ranges in PLACES[int(scene.count)]
        ]
        inward = rng.random() < 0.6
        lifted = figure.lift if scene.behavior == "moving" else 0
        turn = {"moving": -16, "defending": -9}.get(scene.behavior, 0) if plan.leans else 0
        squash = 0.8 if scene.behavior == "sleeping" and plan.sinks else 1
        animals = nests = ""
        for x, depth, scale in spots:
            scale *= plan.scale * (0.72 if scene.sexage == "juvenile" else 1)
            facing = rng.choice((-1, 1))
            if len(spots) > 1 and inward:
                facing = 1 if x < SIZE / 2 else -1
            aside = (figure.front[0] - 48) * 0.4 + (12 if scene.behavior == "guarding eggs" else 0)
            x = min(max(x - facing * aside * scale, 58 * scale), SIZE - 58 * scale)
            y, lift = ground + depth, lifted * scale * 1.1
            if not dead:
                wide, seen = (34 * scale, 0.26) if lift else (46 * scale, 0.38)
                shade = self.context["glow"](*[f"#0b1220/{seen}"] * 2, "#0b1220/0")
                animals += oval(x, y + 1, wide * 1.25, wide * 0.2, shade)
            if self.context["water"]:
                lift += (2 if scene.behavior == "sleeping" else 18) * scale
            animals += (
                f'<g transform="translate({x:.1f} {y - lift:.1f}) '
                f'scale({facing * scale:.3f} {scale * squash:.3f}) rotate({turn})">{svg}</g>'
            )
            if dead:
                pin, top = x + facing * figure.side[0] * scale, y + (figure.side[1] - 8) * scale
                animals += dot(pin, top, 1.2, "#3b3b44") + dot(pin, top - 17, 3.4, "#2e6fd6")
                animals += box(pin - 0.8, top - 16, 1.6, 16, "#7c7f8a")
            if scene.object == "nest":
                nests += things.nest(x, y + 2, scale)
        return animals + nests


def _macro(module: Any, name: str) -> str:
    """What the macro with the name of an attribute's value draws."""
    return str(getattr(module, name.replace(" ", "_"))())


@cache
def _templates() -> Environment:
    # SVG is written here from the repository's own tables, so nothing is escaped.
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "drawings"), line_statement_prefix="%"
    )
    shapes = (path, line, polygon, oval, dot, dots, box, star)
    environment.globals |= _by_name(mix, lighter, darker, cos, sin, *shapes)
    return environment


def _by_name(*functions: Callable[..., Any]) -> dict[str, Any]:
    return {function.__name__: function for function in functions}


class Definitions:
    """The gradients and clips of one scene, each defined once."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def _reference(self, markup: str) -> str:
        return f"url(#{self._ids.setdefault(markup, f'd{len(self._ids)}')})"

    def _gradient(self, element: str, stops: tuple[str, ...]) -> str:
        stop_tags = ""
        for number, stop in enumerate(stops):
            color, _, opacity = stop.partition("/")
            stop_tags += (
                f'<stop offset="{number / max(1, len(stops) - 1):.3f}" stop-color="{color}" '
                f'stop-opacity="{opacity or 1}"/>'
            )
        return self._reference(f"<{element}>{stop_tags}</{element.split()[0]}>")

    def fade(self, *stops: str) -> str:
        """Gradient from top to bottom; a stop may carry an opacity, as in `#ffffff/0.5`."""
        return self._gradient('linearGradient @ x1="0" y1="0" x2="0" y2="1"', stops)

    def glow(self, *stops: str, at: tuple[float, float] = (0.5, 0.5)) -> str:
        """Gradient from the center outwards, with the light at `at`."""
        return self._gradient(f'radialGradient @ fx="{at[0]}" fy="{at[1]}"', stops)

    def clip(self, d: str) -> str:
        """Clip path from path data."""
        return self._reference(f'<clipPath @><path d="{d}"/></clipPath>')

    def definitions(self) -> str:
        """The content of the `defs` element."""
        return "".join(text.replace("@", f'id="{name}"', 1) for text, name in self._ids.items())


def mix(first: str, second: str, share: float) -> str:
    """Blend two `#rrggbb` colors; `share` 0 gives the first, 1 the second."""
    pairs = zip(bytes.fromhex(first[1:]), bytes.fromhex(second[1:]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def lighter(color: str, share: float) -> str:
    """Blend with white."""
    return mix(color, "#ffffff", share)


def darker(color: str, share: float) -> str:
    """Blend with a deep blue-black, which looks softer than black."""
    return mix(color, "#141a2e", share)


def path(d: str, fill: str, **more: Any) -> str:
    """A filled path."""
    return _element("path", fill, {"d": d, **more})


def line(d: str, stroke: str, width: float, **more: Any) -> str:
    """An open path with round ends."""
    more |= {"stroke": stroke, "stroke_width": width}
    return path(d, "none", stroke_linecap="round", stroke_linejoin="round", **more)


def polygon(points: list[tuple[float, float]], fill: str, **more: Any) -> str:
    """A filled polygon."""
    more["points"] = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return _element("polygon", fill, more)


def oval(x: float, y: float, rx: float, ry: float, fill: str, turn: float = 0, **more: Any) -> str:
    """An ellipse, turned about its center by `turn` degrees."""
    if turn:
        more["transform"] = f"rotate({turn:.1f} {x:.1f} {y:.1f})"
    return _element("ellipse", fill, more, cx=x, cy=y, rx=rx, ry=ry)


def dot(x: float, y: float, r: float, fill: str, **more: Any) -> str:
    """A circle."""
    return _element("circle", fill, more, cx=x, cy=y, r=r)


def dots(places: list[tuple[float, float, float]], fill: str, **more: Any) -> str:
    """Circles (x, y, radius) of one color."""
    return "".join(dot(x, y, r, fill, **more) for x, y, r in places)


def box(x: float, y: float, w: float, h: float, fill: str, r: float = 0, **more: Any) -> str:
    """A rectangle with corner radius `r`."""
    return _element("rect", fill, more, x=x, y=y, width=w, height=h, rx=r)


def cos(degrees: float) -> float:
    """Cosine of an angle in degrees."""
    return math.cos(math.radians(degrees))


def sin(degrees: float) -> float:
    """Sine of an angle in degrees."""
    return math.sin(math.radians(degrees))


def star(x: float, y: float, r: float, fill: str) -> str:
    """A star with six points."""
    radii = [r, r * 0.45] * 6
    corners = [(x + far * sin(30 * n), y - far * cos(30 * n)) for n, far in enumerate(radii)]
    return polygon(corners, fill)


def _element(name: str, fill: str, more: dict[str, Any], **numbers: float) -> str:
    """An element; `opacity` is set on fill and stroke, which spares resvg a layer."""
    if "opacity" in more:
        opacity = more.pop("opacity")
        more |= {"fill_opacity": opacity, "stroke_opacity": opacity}
    attributes = "".join(f' {key}="{value:.1f}"' for key, value in numbers.items())
    rest = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in more.items())
    return f'<{name} fill="{fill}"{attributes}{rest}/>'
