"""Charts as Vega-Lite specifications in the page, which the browser draws (static/js/charts.js).

Colors are the style sheet's variables, so that one chart serves light and dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from django.utils.html import format_html, format_html_join, json_script
from django.utils.safestring import SafeString

#: A specification, or a part of one.
Spec = dict[str, Any]

TEXT: Final = "var(--text)"
MUTED: Final = "var(--muted)"
LINE: Final = "var(--line)"
ACCENT: Final = "var(--accent)"
#: For series and categories, in order; distinguished without color by shape or label too.
SERIES: Final = ("var(--accent)", "var(--info)", "var(--negative)", "var(--unsure)", "var(--muted)")
#: Of runs or other things that one chart distinguishes, in order.
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross")
MOST_SHAPES: Final = len(SHAPES)
#: Of all text, in pixels.
TEXT_SIZE: Final = 12
#: Widths in pixels by the names that leaderboard.css knows; the narrow one fits a phone's card.
SIZES: Final = {"wide": 1080, "medium": 520, "narrow": 300}

CONFIG: Final = {
    "font": "system-ui, sans-serif",
    "axis": {
        "labelColor": MUTED,
        "titleColor": TEXT,
        "titleFontWeight": "normal",
        "gridColor": LINE,
        "domainColor": LINE,
        "tickColor": LINE,
        "labelFontSize": TEXT_SIZE,
        "titleFontSize": TEXT_SIZE,
    },
    "legend": {"labelColor": TEXT, "titleColor": MUTED, "labelFontSize": TEXT_SIZE - 1},
    "header": {"labelColor": TEXT, "titleColor": MUTED},
    "view": {"stroke": None},
}


def number(field: str, **more: Any) -> Spec:
    """The encoding of a field of numbers."""
    return {"field": field, "type": "quantitative", **more}


def name(field: str, **more: Any) -> Spec:
    """The encoding of a field of names."""
    return {"field": field, "type": "nominal", **more}


def chart(spec: Spec, *, label: str, width: int = 0) -> SafeString:
    """The place of a chart, with its specification.

    `label` says in words what it shows, for those who don't see it; give the figures as a table
    beside it too. `width`: pixels that the drawing is made up to, with room to its left.
    """
    return format_html(
        '<div class="chart" role="img" aria-label="{}" data-vega="{}">{}'
        '<div data-vega-place class="small muted">Drawing the chart …</div></div>',
        label,
        width or "",
        json_script({"background": "transparent", "config": CONFIG, **spec}),
    )


def sized_chart(draw: Callable[[int], Spec], *, label: str) -> SafeString:
    """A chart for each width of SIZES, for a place with the class `chart-wrap`, whose style sheet
    shows the one that fits it, and only that is drawn: so text has the same size on phones and wide
    screens.

    `draw` makes the chart for a width in pixels, axes and names included. `label`: see `chart`.
    """
    return format_html_join(
        "",
        '<div class="chart-{}">{}</div>',
        ((size, chart(draw(width), label=label)) for size, width in SIZES.items()),
    )


LABEL_LENGTH: Final = 34
#: Width of a letter in pixels, generously: browsers have other fonts than the server.
LETTER: Final = 0.6 * TEXT_SIZE
#: Half the side of a point, and from its middle to the name beside it, in pixels.
POINT_ROOM: Final = 5
GAP: Final = 8


@dataclass(frozen=True, slots=True)
class Label:
    """Where a point's name is, in pixels of the drawing area."""

    text: str
    x: float
    y: float
    align: Literal["left", "right", "center"]


def short(name: str, length: int = LABEL_LENGTH) -> str:
    """A name cut in its middle, where its ends distinguish it best."""
    name = " ".join(name.split())
    if len(name) <= length:
        return name
    head = (length - 1) * 2 // 3
    return f"{name[:head].rstrip()}…{name[len(name) - (length - 1 - head) :].lstrip()}"


def distinct(names: Sequence[str], length: int = LABEL_LENGTH) -> list[str]:
    """Shortened names, no two alike: later ones of the same text are numbered."""
    result: list[str] = []
    for name in names:
        text, number = short(name, length), 1
        while text in result:
            number += 1
            text = f"{short(name, length - len(f' ({number})'))} ({number})"
        result.append(text)
    return result


def place_labels(
    points: Sequence[tuple[float, float]],
    texts: Sequence[Sequence[str]],
    *,
    width: float,
    height: float,
) -> list[Label]:
    """One of its texts beside each point, in pixels from the top left, so that no text covers
    another or a point; a point where none fits stays without.

    Higher points get theirs first, and all points their first text before any its second. Each
    text is tried to the right, left, above and below.
    """
    taken = [(x - POINT_ROOM, y - POINT_ROOM, x + POINT_ROOM, y + POINT_ROOM) for x, y in points]
    labels = []
    waiting = sorted(range(len(points)), key=lambda one: points[one][1])
    for attempt in range(max(map(len, texts), default=0)):
        without = []
        for place in waiting:
            text = texts[place][attempt] if attempt < len(texts[place]) else ""
            found = _free_place(text, points[place], taken, width, height) if text else None
            if found is None:
                without.append(place)
            else:
                label, box = found
                taken.append(box)
                labels.append(label)
        waiting = without
    return labels


Box = tuple[float, float, float, float]


def _free_place(
    text: str, point: tuple[float, float], taken: Sequence[Box], width: float, height: float
) -> tuple[Label, Box] | None:
    x, y = point
    line, wide = TEXT_SIZE + 3, len(text) * LETTER
    tries: tuple[tuple[float, float, Literal["left", "right", "center"], float], ...] = (
        (x + GAP, y, "left", x + GAP),
        (x - GAP, y, "right", x - GAP - wide),
        (x, y - GAP - line / 2, "center", x - wide / 2),
        (x, y + GAP + line / 2, "center", x - wide / 2),
    )
    for at_x, at_y, align, left in tries:
        box = (left, at_y - line / 2, left + wide, at_y + line / 2)
        inside = box[0] >= 0 and box[2] <= width and box[1] >= 0 and box[3] <= height
        if inside and not any(_overlap(box, other) for other in taken):
            return Label(text, at_x, at_y, align), box
    return None


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


#: Ticks of a logarithmic axis stand no closer than this, in pixels.
TICK_ROOM: Final = 40


def counts_axis(most: int, ticks: int) -> dict[str, Any]:
    """An axis of counts from 0 to `most`, with at most about `ticks` whole numbers."""
    step = max(1, math.ceil(most / ticks))
    power = 10 ** (len(str(step)) - 1)
    step = next(one * power for one in (1, 2, 5, 10) if one * power >= step)
    return {"values": list(range(0, most + 1, step)), "format": ",d"}


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis; where something is 0, that has a place of its own at its low end."""

    low: float
    high: float
    ticks: tuple[float, ...]
    """At least two, ascending."""
    zero: float | None
    """The value at whose place 0 is drawn."""

    def at(self, value: float) -> float:
        """Where a value stands, from 0 at the low end to 1."""
        shown = self.zero if value == 0 and self.zero is not None else value
        return math.log(shown / self.low) / math.log(self.high / self.low)


def log_axis(values: Sequence[float], width: float) -> LogAxis:
    """An axis of `width` pixels around all values, with ticks at 1, 2 and 5 times powers of ten,
    or at powers alone where those are enough or the others too close.

    ValueError: a value below 0, or no value.
    """
    if min(values) < 0:
        raise ValueError("a logarithmic axis has no place below 0")
    above = [value for value in values if value > 0] or [1.0]
    low, high = min(above), max(above)
    room = max(1.3, (high / low) ** 0.12)
    low, high = low / room, high * room
    ticks = _ticks(low, high, (1, 2, 5))
    if len(ticks) < 2:
        around = _ticks(low / 10, high * 10, (1, 2, 5))
        below = max(one for one in around if one <= low)
        beyond = min(one for one in around if one >= high)
        ticks = [below, *ticks, beyond]
        low, high = below / 1.1, beyond * 1.1
    powers = _ticks(low, high, (1,))
    if len(powers) > 1 and (len(ticks) * TICK_ROOM > width or len(powers) > 3):
        apart = math.ceil(len(powers) * TICK_ROOM / width)
        ticks = powers[::apart] if len(powers) > apart else [powers[0], powers[-1]]
    if min(values) > 0:
        return LogAxis(low, high, tuple(ticks), None)
    span = high / low
    zero = low / span**0.1
    return LogAxis(zero / span**0.08, high, (zero, *ticks), zero)


def _ticks(low: float, high: float, steps: Sequence[int]) -> list[float]:
    """The steps times powers of ten from `low` to `high`."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [
        step * 10.0**power
        for power in powers
        for step in steps
        if low <= step * 10.0**power <= high
    ]
