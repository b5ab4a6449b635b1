"""Charts as Vega-Lite specifications in the page, which the browser draws (static/js/charts.js).

Colors are the style sheet's variables, so that one chart serves light and dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.html import format_html, json_script
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
    beside it too. `width`: pixels that the drawing is made up to, with room to its left. A
    specification whose own width is "container" fills its place, and is drawn again when that
    changes: so text has the same size on phones and wide screens. Names in a layer that is called
    "names" are put beside the marks of the layer "points"; those that would cover others are left
    out.
    """
    return format_html(
        '<div class="chart" role="img" aria-label="{}" data-vega="{}">{}'
        '<div data-vega-place class="small muted">Drawing the chart …</div></div>',
        label,
        width or "",
        json_script({"background": "transparent", "config": CONFIG, **spec}),
    )


LABEL_LENGTH: Final = 34


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


def counts_axis(most: int, ticks: int) -> dict[str, Any]:
    """An axis of counts from 0 to `most`, with at most about `ticks` whole numbers."""
    step = max(1, math.ceil(most / ticks))
    power = 10 ** (len(str(step)) - 1)
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step)
    return {"values": list(range(0, most + 1, step)), "format": ",d"}


#: With more powers of ten, a logarithmic axis has ticks at these alone.
MOST_POWERS_WITH_STEPS: Final = 3


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis; where something is 0, that has a place of its own at its low end."""

    low: float
    high: float
    ticks: tuple[float, ...]
    """At least two, ascending."""
    zero: float | None
    """The value at whose place 0 is drawn."""


def log_axis(values: Sequence[float]) -> LogAxis:
    """An axis around all values, with ticks at 1, 2 and 5 times powers of ten, or at powers alone
    where those are enough.

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
        below = max(tick for tick in around if tick <= low)
        beyond = min(tick for tick in around if tick >= high)
        ticks = [below, *ticks, beyond]
        low, high = below / 1.1, beyond * 1.1
    powers = _ticks(low, high, (1,))
    if len(powers) > MOST_POWERS_WITH_STEPS:
        ticks = powers
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
