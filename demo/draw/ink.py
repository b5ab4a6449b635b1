"""Small SVG vocabulary: shapes, gradients, colours and the parts a drawn animal hands on."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from demo.kinds import Morph

SIZE = 224
"""Side of a scene in SVG units and, at full size, in pixels."""

Point = tuple[float, float]


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def mix(first: str, second: str, share: float) -> str:
    """Blend two ``#rrggbb`` colours; ``share`` 0 gives the first, 1 the second."""
    pairs = zip(_channels(first), _channels(second), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def lighter(colour: str, share: float = 0.25) -> str:
    """Blend towards white."""
    return mix(colour, "#ffffff", share)


def darker(colour: str, share: float = 0.25) -> str:
    """Blend towards a deep blue-black, which looks softer than plain black."""
    return mix(colour, "#141a2e", share)


def _extra(**attributes: object) -> str:
    if "opacity" in attributes:
        # On a single shape these two draw the same and need no layer of their own.
        seen = attributes.pop("opacity")
        attributes.update(fill_opacity=seen, stroke_opacity=seen)
    return "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())


def path(d: str, fill: str = "none", **more: object) -> str:
    """A path element."""
    return f'<path d="{d}" fill="{fill}"{_extra(**more)}/>'


def line(d: str, stroke: str, width: float, **more: object) -> str:
    """An open stroke with round ends."""
    return (
        f'<path d="{d}" fill="none" stroke="{stroke}" stroke-width="{width:.2f}" '
        f'stroke-linecap="round" stroke-linejoin="round"{_extra(**more)}/>'
    )


def oval(
    x: float, y: float, rx: float, ry: float, fill: str, turn: float = 0, **more: object
) -> str:
    """An ellipse, turned about its centre by ``turn`` degrees."""
    turned = f' transform="rotate({turn:.1f} {x:.1f} {y:.1f})"' if turn else ""
    return (
        f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{rx:.1f}" ry="{ry:.1f}" fill="{fill}"'
        f"{turned}{_extra(**more)}/>"
    )


def dot(x: float, y: float, r: float, fill: str, **more: object) -> str:
    """A circle."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" fill="{fill}"{_extra(**more)}/>'


def box(x: float, y: float, w: float, h: float, fill: str, r: float = 0, **more: object) -> str:
    """A rectangle with corner radius ``r``."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{r:.1f}" '
        f'fill="{fill}"{_extra(**more)}/>'
    )


def group(content: str, transform: str = "", clip_path: str = "", opacity: float = 1.0) -> str:
    """A group, moved by an SVG transform, clipped, or seen through."""
    moved = f' transform="{transform}"' if transform else ""
    clipped = f' clip-path="{clip_path}"' if clip_path else ""
    seen = f' opacity="{opacity}"' if opacity < 1 else ""
    return f"<g{moved}{clipped}{seen}>{content}</g>"


def polygon(points: list[Point], fill: str, **more: object) -> str:
    """A filled polygon."""
    listed = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polygon points="{listed}" fill="{fill}"{_extra(**more)}/>'


def star(x: float, y: float, r: float, fill: str, points: int = 5, inner: float = 0.45) -> str:
    """A star with the given number of points."""
    corners = []
    for step in range(points * 2):
        reach = r if step % 2 == 0 else r * inner
        angle = math.pi * step / points - math.pi / 2
        corners.append((x + reach * math.cos(angle), y + reach * math.sin(angle)))
    return polygon(corners, fill)


class Ink:
    """Collects the gradients and clips that one picture defines, each once."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._ids: dict[str, str] = {}

    def _define(self, prefix: str, markup: str) -> str:
        if markup not in self._ids:
            self._ids[markup] = f"{prefix}{len(self._ids)}"
        return f"url(#{self._ids[markup]})"

    def fade(self, *stops: str, across: bool = False) -> str:
        """Linear gradient over evenly spaced colours, downwards or across.

        A stop may carry an opacity, as in ``#ffffff/0.5``.
        """
        ends = 'x1="0" y1="0" x2="1" y2="0"' if across else 'x1="0" y1="0" x2="0" y2="1"'
        return self._define("l", f"<linearGradient @ {ends}>{_stops(stops)}</linearGradient>")

    def glow(self, *stops: str, at: Point = (0.5, 0.5)) -> str:
        """Radial gradient from the centre outwards, with the light at ``at``."""
        focus = f'cx="0.5" cy="0.5" r="0.5" fx="{at[0]}" fy="{at[1]}"'
        return self._define("r", f"<radialGradient @ {focus}>{_stops(stops)}</radialGradient>")

    def clip(self, d: str) -> str:
        """Clip path from path data; give the result as ``clip_path``."""
        return self._define("c", f'<clipPath @><path d="{d}"/></clipPath>')

    def definitions(self) -> str:
        """All definitions as one ``defs`` element."""
        made = "".join(text.replace("@", f'id="{name}"', 1) for text, name in self._ids.items())
        return f"<defs>{made}</defs>"


def _stops(stops: tuple[str, ...]) -> str:
    last = max(1, len(stops) - 1)
    parts = []
    for place, stop in enumerate(stops):
        colour, _, opacity = stop.partition("/")
        seen = f' stop-opacity="{opacity}"' if opacity else ""
        parts.append(f'<stop offset="{place / last:.3f}" stop-color="{colour}"{seen}/>')
    return "".join(parts)


@dataclass(frozen=True)
class Look:
    """How one animal is to be drawn."""

    morph: Morph
    pattern: str
    trait: str
    sexage: str
    behaviour: str
    dead: bool = False

    @property
    def male(self) -> bool:
        """Adult males wear the ornament of their family."""
        return self.sexage == "adult male"

    @property
    def young(self) -> bool:
        """Juveniles are small, big-eyed and pale-spotted."""
        return self.sexage == "juvenile"

    @property
    def moving(self) -> bool:
        """Leaping, flying, running or swimming."""
        return self.behaviour == "moving"

    @property
    def displaying(self) -> bool:
        """Courting."""
        return self.behaviour == "displaying"

    @property
    def defending(self) -> bool:
        """Threatening, mouth open."""
        return self.behaviour == "defending"

    @property
    def asleep(self) -> bool:
        """Eyes closed."""
        return self.behaviour == "sleeping" or self.dead

    @property
    def body(self) -> str:
        """Main colour; females and juveniles are a little duller."""
        if self.male or self.dead:
            return self.morph.body
        return mix(self.morph.body, "#8d8a80", 0.14)


@dataclass(frozen=True)
class Figure:
    """A drawn animal: feet at y = 0, facing right, about 110 units long.

    The points say where things may be fixed: food at ``mouth``, a tag at ``neck``, a rider or
    young at ``back``, wounds at ``side``, hackles along ``ridge``, eggs at ``front``.
    """

    svg: str
    mouth: Point
    neck: Point
    back: Point
    side: Point
    ridge: tuple[Point, ...]
    front: Point = (58.0, 0.0)
    collar: tuple[float, float, float] = field(default=(7.0, 11.0, 15.0))
    """Half width, half height and lean in degrees of a collar at the neck."""
    lift: float = 0.0
    """How far above the ground the animal floats of itself."""


def eye(x: float, y: float, r: float, look: Look, iris: str = "#2a1a12") -> str:
    """A bright eye with a glint, larger in the young, or a closed lid."""
    size = r * (1.25 if look.young else 1.0)
    if look.asleep:
        lid = f"M{x - size:.1f},{y:.1f} Q{x:.1f},{y + size * 1.1:.1f} {x + size:.1f},{y:.1f}"
        return line(lid, "#1a1722", max(2.0, r * 0.42))
    return (
        dot(x, y, size, "#fdfdf8")
        + dot(x + size * 0.15, y, size * 0.78, iris)
        + dot(x + size * 0.2, y, size * 0.48, "#0d0b12")
        + dot(x + size * 0.45, y - size * 0.38, size * 0.28, "#ffffff")
    )


def speckles(points: list[Point], r: float, look: Look) -> str:
    """The pale spots of a juvenile; nothing on adults."""
    if not look.young:
        return ""
    return "".join(dot(x, y, r, "#fffbe8", opacity=0.9) for x, y in points)
