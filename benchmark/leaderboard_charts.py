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

from benchmark.charts import ACCENT, LINE, MUTED, SERIES, TEXT, chart_svg

#: Pixels of the drawing area; the page scales the whole.
WIDTH: Final = 620
TRADEOFF_HEIGHT: Final = 320
ROW_HEIGHT: Final = 24
LABEL_SIZE: Final = 11
LABEL_LENGTH: Final = 34
#: Width of a letter of a label, generously.
LETTER: Final = 0.6 * LABEL_SIZE
AXIS_LETTER: Final = 0.6 * 12
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross")
#: How many runs one picture tells apart.
MOST_RUNS: Final = len(SHAPES)


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
class Label:
    """Where a point's name stands, in pixels of the drawing area."""

    text: str
    x: float
    y: float
    align: Literal["left", "right", "center"]


def short(name: str, length: int = LABEL_LENGTH) -> str:
    """A name cut in its middle, where its ends tell it apart best."""
    name = " ".join(name.split())
    if len(name) <= length:
        return name
    head = (length - 1) * 2 // 3
    return f"{name[:head].rstrip()}…{name[len(name) - (length - 1 - head) :].lstrip()}"


def distinct(names: Sequence[str], length: int = LABEL_LENGTH) -> list[str]:
    """Shortened names, no two alike: later ones of the same text are numbered."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        text = short(name, length)
        seen[text] = seen.get(text, 0) + 1
        result.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return result


def interval_svg(rows: Sequence[Interval], *, measure: str, scale: float) -> SafeString:
    """A dot with its interval for each run, in the order given; figures times `scale`."""
    names = distinct([row.name for row in rows])
    values = [
        {"run": name, "low": row.low * scale, "high": row.high * scale, "mean": row.value * scale}
        for name, row in zip(names, rows, strict=True)
    ]
    y = alt.Y("run:N", sort=names, title=None, axis=_name_axis(names))
    base = alt.Chart(alt.Data(values=values))
    chart = (
        base.mark_rule(color=MUTED, strokeWidth=2).encode(
            y=y, x=alt.X("low:Q", title=measure, scale=alt.Scale(zero=False)), x2="high:Q"
        )
        + base.mark_point(color=ACCENT, filled=True, size=70, opacity=1).encode(y=y, x="mean:Q")
    ).properties(width=WIDTH - 120, height=max(1, len(rows)) * ROW_HEIGHT)
    return chart_svg(chart, label=f"{measure} of {len(rows)} runs with 95 % confidence intervals")


def tradeoff_svg(
    points: Sequence[Point], *, x: str, measure: str, scale: float, unit: str
) -> SafeString:
    """A measure against parameters or cost, on a logarithmic axis; no two labels overlap.

    Where a name doesn't fit beside its point, "#" and its place in the table is tried instead.
    `unit` stands behind x's title. Points need x > 0: ValueError.
    """
    if any(point.x <= 0 for point in points):
        raise ValueError("a logarithmic axis begins above 0")
    x_low, x_high = _log_domain([point.x for point in points])
    y_low, y_high = _padded([point.y * scale for point in points])
    names = distinct([point.name for point in points])
    values = [
        {
            "x": point.x,
            "y": point.y * scale,
            "stage": "two stages" if point.two_stage else "one stage",
        }
        for point in points
    ]
    places = [
        (
            WIDTH * math.log(point.x / x_low) / math.log(x_high / x_low),
            TRADEOFF_HEIGHT * (y_high - point.y * scale) / (y_high - y_low),
        )
        for point in points
    ]
    x_axis = alt.X(
        "x:Q",
        title=f"{x} ({unit})",
        scale=alt.Scale(type="log", domain=[x_low, x_high], nice=False),
        axis=alt.Axis(values=_ticks(x_low, x_high), format="~s", grid=True),
    )
    y_axis = alt.Y(
        "y:Q", title=measure, scale=alt.Scale(domain=[y_low, y_high], zero=False, nice=False)
    )
    stages = sorted({value["stage"] for value in values})
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
    texts = [
        (name,) if point.place is None else (name, f"#{point.place}")
        for name, point in zip(names, points, strict=True)
    ]
    for label in place_labels(places, texts, width=WIDTH, height=TRADEOFF_HEIGHT):
        layers.append(
            alt.Chart(alt.Data(values=[{"text": label.text}]))
            .mark_text(
                align=label.align, baseline="middle", color=TEXT, fontSize=LABEL_SIZE, clip=False
            )
            .encode(text="text:N", x=alt.value(label.x), y=alt.value(label.y))
        )
    chart = alt.layer(*layers).properties(width=WIDTH, height=TRADEOFF_HEIGHT)
    return chart_svg(chart, label=f"{measure} against {x.lower()} of {len(points)} runs")


def categories_svg(
    runs: Sequence[str],
    rows: Iterable[tuple[str, Sequence[float | None]]],
    *,
    measure: str,
    scale: float,
) -> SafeString:
    """A dot for each run in each category; at most MOST_RUNS runs, told apart by shape too.

    `rows`: a category and each run's mean in it. ValueError: too many runs.
    """
    if len(runs) > MOST_RUNS:
        raise ValueError(f"{len(runs)} runs where {MOST_RUNS} can be told apart")
    names = distinct(runs)
    categories: list[str] = []
    values = []
    for category, means in rows:
        categories.append(category)
        values += [
            {"category": category, "run": name, "mean": mean * scale}
            for name, mean in zip(names, means, strict=True)
            if mean is not None
        ]
    y = alt.Y("category:N", sort=categories, title=None, axis=_name_axis(categories))
    base = alt.Chart(alt.Data(values=values))
    span = base.mark_rule(color=LINE, strokeWidth=3).encode(
        y=y, x=alt.X("min(mean):Q", title=measure), x2="max(mean):Q"
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        y=y,
        x=alt.X("mean:Q", title=measure),
        color=alt.Color(
            "run:N",
            title=None,
            scale=alt.Scale(domain=names, range=list(SERIES)),
            legend=alt.Legend(orient="top", columns=2, labelLimit=260),
        ),
        shape=alt.Shape("run:N", title=None, scale=alt.Scale(domain=names, range=list(SHAPES))),
    )
    chart = (span + dots).properties(width=WIDTH - 180, height=max(1, len(categories)) * ROW_HEIGHT)
    return chart_svg(chart, label=f"{measure} by category of {', '.join(names)}")


def differences_svg(
    first: str, second: str, pairs: Sequence[tuple[float, float]], *, measure: str, scale: float
) -> SafeString:
    """Each query of two runs: a point by both values, and the differences, sorted, as bars."""
    names = distinct([first, second], 28)
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
    points = base.mark_point(color=ACCENT, filled=True, size=45, opacity=0.75).encode(
        x=alt.X("second:Q", title=f"{names[1]}: {measure}", scale=domain),
        y=alt.Y("first:Q", title=f"{names[0]}: {measure}", scale=domain),
    )
    bars = base.mark_bar(stroke=None).encode(
        x=alt.X("place:O", title="queries by difference", axis=alt.Axis(labels=False, ticks=False)),
        y=alt.Y("difference:Q", title=f"difference in {measure}"),
        color=alt.condition("datum.difference > 0", alt.value(ACCENT), alt.value(SERIES[2])),
    )
    chart = (diagonal + points).properties(width=280, height=280) | bars.properties(
        width=300, height=280
    )
    return chart_svg(chart, label=f"{measure} of {names[0]} and {names[1]}, query by query")


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
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in points]
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
    gap, line, wide = 8, LABEL_SIZE + 3, len(text) * LETTER
    tries: tuple[tuple[float, float, Literal["left", "right", "center"], float], ...] = (
        (x + gap, y, "left", x + gap),
        (x - gap, y, "right", x - gap - wide),
        (x, y - gap - line / 2, "center", x - wide / 2),
        (x, y + gap + line / 2, "center", x - wide / 2),
    )
    for at_x, at_y, align, left in tries:
        box = (left, at_y - line / 2, left + wide, at_y + line / 2)
        inside = box[0] >= 0 and box[2] <= width and box[1] >= 0 and box[3] <= height
        if inside and not any(_overlap(box, other) for other in taken):
            return Label(text, at_x, at_y, align), box
    return None


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _name_axis(names: Sequence[str]) -> Any:
    """With room for the longest name in whatever font the browser has."""
    room = AXIS_LETTER * max(map(len, names), default=0)
    return alt.Axis(
        labelLimit=400, minExtent=room, grid=True, ticks=False, domain=False, labelColor=TEXT
    )


def _padded(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


def _log_domain(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = max(1.3, (high / low) ** 0.12)
    return low / room, high * room


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten; powers alone over more than three decades."""
    steps = (1,) if high / low > 1000 else (1, 2, 5)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [
        step * 10.0**power
        for power in powers
        for step in steps
        if low <= step * 10.0**power <= high
    ]
