"""The leaderboard's pictures: intervals, a measure against parameters or cost, categories, two
runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import altair as alt
from django.utils.safestring import SafeString

from benchmark.chart_labels import LABEL_LENGTH, LETTER, distinct, place_labels
from benchmark.charts import (
    ACCENT,
    LINE,
    MOST_SHAPES,
    MUTED,
    SERIES,
    SHAPES,
    SIZES,
    TEXT,
    TEXT_SIZE,
    sized_svg,
)

#: In pixels: left and right of a picture, and beside an axis of figures.
EDGES: Final = 28
AXIS_ROOM: Final = 62
#: A row with its name beside it, and one with its name above it.
ROW_HEIGHT: Final = 24
TALL_ROW_HEIGHT: Final = 40
#: From the middle of a tall row to its name and to its mark.
NAME_UP: Final = -8
MARK_DOWN: Final = 9
#: Between a row's name and the drawing area, so that a mark at 0 doesn't touch the name.
NAME_GAP: Final = 9
#: Letters of a name beside a row.
ROW_NAME_LENGTH: Final = 52
LEGEND_LENGTH: Final = 30
#: Ticks of a logarithmic axis stand no closer than this, in pixels.
TICK_ROOM: Final = 40
#: And those of an axis of figures, about.
FIGURE_ROOM: Final = 55
#: Of a legend's entry besides its name; browsers have wider letters than the server.
ENTRY_ROOM: Final = 60


@dataclass(frozen=True, slots=True)
class Interval:
    """A run's mean with its confidence interval."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Point:
    """A run in a plot against what it costs."""

    name: str
    x: float
    y: float
    place: int | None = None
    """In the table; stands beside the point where the name doesn't fit."""
    two_stage: bool = False


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


def interval_svg(rows: Sequence[Interval], *, measure: str, scale: float) -> SafeString:
    """A dot with its interval for each run, in the order given; figures times `scale`."""

    def draw(width: int) -> Any:
        lines = _Rows([row.name for row in rows], width)
        values = [
            {
                "name": name,
                "low": row.low * scale,
                "high": row.high * scale,
                "mean": row.value * scale,
            }
            for name, row in zip(lines.names, rows, strict=True)
        ]
        base = alt.Chart(alt.Data(values=values))
        x = lines.x("low:Q", measure, zero=False)
        rules = base.mark_rule(color=MUTED, strokeWidth=2, yOffset=lines.down)
        points = base.mark_point(color=ACCENT, filled=True, size=70, opacity=1, yOffset=lines.down)
        return lines.layered(
            base,
            rules.encode(y=lines.y(), x=x, x2="high:Q"),
            points.encode(y=lines.y(), x="mean:Q"),
        )

    return sized_svg(draw, label=f"{measure} of {len(rows)} runs with 95 % confidence intervals")


def tradeoff_svg(
    points: Sequence[Point], *, x: str, measure: str, scale: float, unit: str
) -> SafeString:
    """A measure against parameters or cost, on a logarithmic axis; no two labels overlap.

    Where a name doesn't fit beside its point, "#" and its place in the table is tried instead.
    `unit` stands behind x's title. What is 0 stands left of the axis. ValueError: x below 0, or no
    point.
    """

    def draw(width: int) -> Any:
        return _tradeoff(points, x=f"{x} ({unit})", measure=measure, scale=scale, width=width)

    return sized_svg(draw, label=f"{measure} against {x.lower()} of {len(points)} runs")


def categories_svg(
    runs: Sequence[str],
    rows: Iterable[tuple[str, Sequence[float | None]]],
    *,
    measure: str,
    scale: float,
) -> SafeString:
    """A dot for each run in each category; at most MOST_SHAPES runs, told apart by shape too.

    `rows`: a category and each run's mean in it. ValueError: too many runs.
    """
    if len(runs) > MOST_SHAPES:
        raise ValueError(f"{len(runs)} runs where {MOST_SHAPES} can be told apart")
    names = distinct(runs, LEGEND_LENGTH)
    figures = list(rows)

    def draw(width: int) -> Any:
        lines = _Rows([category for category, _ in figures], width)
        values = [
            {"name": line, "run": name, "mean": mean * scale}
            for line, (_, means) in zip(lines.names, figures, strict=True)
            for name, mean in zip(names, means, strict=True)
            if mean is not None
        ]
        base = alt.Chart(alt.Data(values=values))
        span = base.mark_rule(color=LINE, strokeWidth=3, yOffset=lines.down).encode(
            y=lines.y(), x=lines.x("min(mean):Q", measure), x2="max(mean):Q"
        )
        columns = max(1, int(lines.width / (LEGEND_LENGTH * LETTER + ENTRY_ROOM)))
        dots = base.mark_point(filled=True, size=90, opacity=1, yOffset=lines.down).encode(
            y=lines.y(),
            x=lines.x("mean:Q", measure),
            color=alt.Color(
                "run:N",
                title=None,
                scale=alt.Scale(domain=names, range=list(SERIES)),
                legend=alt.Legend(
                    orient="top", columns=columns, columnPadding=ENTRY_ROOM / 2, labelLimit=0
                ),
            ),
            shape=alt.Shape("run:N", title=None, scale=alt.Scale(domain=names, range=list(SHAPES))),
        )
        return lines.layered(alt.Chart(alt.Data(values=lines.values)), span, dots)

    return sized_svg(draw, label=f"{measure} by category of {', '.join(names)}")


def differences_svg(
    first: str, second: str, pairs: Sequence[tuple[float, float]], *, measure: str, scale: float
) -> SafeString:
    """Each query of two runs: a point by both values, and the differences, sorted, as bars; beside
    each other where there is room, else below each other.
    """
    values = [
        {"first": a * scale, "second": b * scale, "difference": (a - b) * scale, "place": place}
        for place, (a, b) in enumerate(sorted(pairs, key=lambda pair: pair[1] - pair[0]), start=1)
    ]
    base = alt.Chart(alt.Data(values=values))
    domain = alt.Scale(domain=[0, scale])
    diagonal = (
        alt.Chart(alt.Data(values=[{"at": 0}, {"at": scale}]))
        .mark_line(color=MUTED, strokeDash=[4, 4])
        .encode(x="at:Q", y="at:Q")
    )

    def draw(width: int) -> Any:
        is_wide = width == SIZES["wide"]
        side = 400 if is_wide else min(360, width - AXIS_ROOM)
        rest = width - side - 2 * AXIS_ROOM - EDGES if is_wide else width - AXIS_ROOM
        names = distinct([first, second], int(side / LETTER) - len(measure) - 2)
        points = base.mark_point(color=ACCENT, filled=True, size=45, opacity=0.75).encode(
            x=alt.X("second:Q", title=f"{names[1]}: {measure}", scale=domain),
            y=alt.Y("first:Q", title=f"{names[0]}: {measure}", scale=domain),
        )
        bars = base.mark_bar(stroke=None).encode(
            x=alt.X(
                "place:O", title="queries by difference", axis=alt.Axis(labels=False, ticks=False)
            ),
            y=alt.Y("difference:Q", title=f"difference in {measure}"),
            color=alt.condition("datum.difference > 0", alt.value(ACCENT), alt.value(SERIES[2])),
        )
        both = (
            (diagonal + points).properties(width=side, height=side),
            bars.properties(width=rest, height=side if is_wide else 220),
        )
        return alt.hconcat(*both) if is_wide else alt.vconcat(*both)

    return sized_svg(
        draw, label=f"{measure} of {' and '.join(distinct([first, second]))}, query by query"
    )


class _Rows:
    """Rows of a picture with their names: beside them where it is wide, else above their marks."""

    def __init__(self, names: Sequence[str], width: int) -> None:
        self.beside = width == SIZES["wide"]
        most = ROW_NAME_LENGTH if self.beside else int((width - EDGES) / LETTER)
        self.names = distinct(names, most)
        self.down = 0 if self.beside else MARK_DOWN
        letters = max(map(len, self.names), default=0)
        self._room = LETTER * letters + NAME_GAP if self.beside else 0
        self.width = width - EDGES - self._room

    @property
    def values(self) -> list[dict[str, str]]:
        return [{"name": name} for name in self.names]

    def x(self, field: str, title: str, *, zero: bool = True) -> Any:
        """An axis of figures with as many ticks as its width takes."""
        ticks = max(3, int(self.width / FIGURE_ROOM))
        return alt.X(
            field,
            title=title,
            scale=alt.Scale(zero=zero),
            axis=alt.Axis(tickCount=ticks, labelFlush=False),
        )

    def y(self) -> Any:
        """With room for the longest name in whatever font the browser has."""
        axis = alt.Axis(
            labelLimit=0,
            labelPadding=NAME_GAP,
            minExtent=self._room,
            grid=True,
            ticks=False,
            domain=False,
            labelColor=TEXT,
        )
        return alt.Y("name:N", sort=self.names, title=None, axis=axis if self.beside else None)

    def layered(self, named: Any, *marks: Any) -> Any:
        """The marks, and the names of the chart `named` above them unless an axis tells them."""
        text = named.mark_text(
            align="left", baseline="middle", color=TEXT, fontSize=TEXT_SIZE, yOffset=NAME_UP
        ).encode(y=self.y(), x=alt.value(0), text="name:N")
        layers = marks if self.beside else (*marks, text)
        height = ROW_HEIGHT if self.beside else TALL_ROW_HEIGHT
        return alt.layer(*layers).properties(
            width=self.width, height=max(1, len(self.names)) * height
        )


def _tradeoff(points: Sequence[Point], *, x: str, measure: str, scale: float, width: int) -> Any:
    wide, high = width - AXIS_ROOM, min(400, 200 + width // 4)
    axis = log_axis([point.x for point in points], wide)
    y_low, y_high = _padded([point.y * scale for point in points])
    values = [
        {
            "x": point.x or axis.zero,
            "y": point.y * scale,
            "stage": "two stages" if point.two_stage else "one stage",
        }
        for point in points
    ]
    number = "format(datum.value, datum.value < 1 ? '~g' : '~s')"
    x_axis = alt.X(
        "x:Q",
        title=x,
        scale=alt.Scale(type="log", domain=[axis.low, axis.high], nice=False),
        axis=alt.Axis(
            values=list(axis.ticks),
            labelExpr=f"datum.value == {axis.zero!r} ? '0' : {number}" if axis.zero else number,
            labelOverlap=False,
            grid=True,
        ),
    )
    y_axis = alt.Y(
        "y:Q",
        title=measure,
        scale=alt.Scale(domain=[y_low, y_high], zero=False, nice=False),
        axis=alt.Axis(tickCount=6),
    )
    stages = {value["stage"] for value in values}
    shape = alt.Shape(
        "stage:N",
        title=None,
        scale=alt.Scale(domain=["one stage", "two stages"], range=["circle", "diamond"]),
        legend=alt.Legend(orient="top", symbolFillColor=ACCENT) if len(stages) > 1 else None,
    )
    layers: list[Any] = [
        alt.Chart(alt.Data(values=values))
        .mark_point(color=ACCENT, filled=True, size=80, opacity=0.9)
        .encode(x=x_axis, y=y_axis, shape=shape)
    ]
    places = [
        (wide * axis.at(point.x), high * (y_high - point.y * scale) / (y_high - y_low))
        for point in points
    ]
    names = distinct([point.name for point in points], min(LABEL_LENGTH, int(wide / LETTER / 2)))
    texts = [
        (name,) if point.place is None else (name, f"#{point.place}")
        for name, point in zip(names, points, strict=True)
    ]
    # In pixels, and in one layer for each way to align: a layer for each name takes seconds.
    by_align: dict[Literal["left", "right", "center"], list[dict[str, Any]]] = {}
    for label in place_labels(places, texts, width=wide, height=high):
        by_align.setdefault(label.align, []).append(
            {"text": label.text, "x": label.x, "y": label.y}
        )
    for align, named in by_align.items():
        layers.append(
            alt.Chart(alt.Data(values=named))
            .mark_text(align=align, baseline="middle", color=TEXT, fontSize=TEXT_SIZE)
            .encode(
                text="text:N",
                x=alt.X("x:Q", scale=None, axis=None),
                y=alt.Y("y:Q", scale=None, axis=None),
            )
        )
    return alt.layer(*layers).properties(width=wide, height=high)


def _padded(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


def _ticks(low: float, high: float, steps: Sequence[int]) -> list[float]:
    """The steps times powers of ten from `low` to `high`."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [
        step * 10.0**power
        for power in powers
        for step in steps
        if low <= step * 10.0**power <= high
    ]
