"""The leaderboard's charts: intervals, a measure against parameters or cost, categories, two
runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from django.utils.safestring import SafeString

from releases.charts import (
    ACCENT,
    LABEL_LENGTH,
    LETTER,
    LINE,
    MOST_SHAPES,
    MUTED,
    SERIES,
    SHAPES,
    SIZES,
    TEXT,
    TEXT_SIZE,
    Spec,
    distinct,
    log_axis,
    name,
    number,
    place_labels,
    sized_chart,
)

#: In pixels: left and right of a chart, and beside an axis of figures.
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
#: Ticks of an axis of figures stand about so far apart, in pixels.
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
    """In the table; shown beside the point where the name doesn't fit."""
    two_stage: bool = False


def interval_chart(rows: Sequence[Interval], *, measure: str, scale: float) -> SafeString:
    """A dot with its interval for each run, in the order given; figures times `scale`."""

    def draw(width: int) -> Spec:
        lines = _Rows([row.name for row in rows], width)
        values = [
            {
                "name": line,
                "low": row.low * scale,
                "high": row.high * scale,
                "mean": row.value * scale,
            }
            for line, row in zip(lines.names, rows, strict=True)
        ]
        rule = {"type": "rule", "color": MUTED, "strokeWidth": 2, "yOffset": lines.down}
        point = _point(70) | {"color": ACCENT, "yOffset": lines.down}
        x = lines.x(number("low"), measure, zero=False)
        return lines.layered(
            {"values": values},
            {"mark": rule, "encoding": {"y": lines.y(), "x": x, "x2": {"field": "high"}}},
            {"mark": point, "encoding": {"y": lines.y(), "x": number("mean")}},
        )

    return sized_chart(draw, label=f"{measure} of {len(rows)} runs with 95 % confidence intervals")


def tradeoff_chart(
    points: Sequence[Point], *, x: str, measure: str, scale: float, unit: str
) -> SafeString:
    """A measure against parameters or cost, on a logarithmic axis; no two labels overlap.

    Where a name doesn't fit beside its point, "#" and its place in the table is tried instead.
    `unit` stands behind x's title. What is 0 stands left of the axis. ValueError: x below 0, or no
    point.
    """

    def draw(width: int) -> Spec:
        return _tradeoff(points, x=f"{x} ({unit})", measure=measure, scale=scale, width=width)

    return sized_chart(draw, label=f"{measure} against {x.lower()} of {len(points)} runs")


def categories_chart(
    runs: Sequence[str],
    rows: Iterable[tuple[str, Sequence[float | None]]],
    *,
    measure: str,
    scale: float,
) -> SafeString:
    """A dot for each run in each category; at most MOST_SHAPES runs, distinguished by shape too.

    `rows`: a category and each run's mean in it. ValueError: too many runs.
    """
    if len(runs) > MOST_SHAPES:
        raise ValueError(f"{len(runs)} runs where {MOST_SHAPES} can be distinguished")
    names = distinct(runs, LEGEND_LENGTH)
    figures = list(rows)

    def draw(width: int) -> Spec:
        lines = _Rows([category for category, _ in figures], width)
        values = [
            {"name": line, "run": run, "mean": mean * scale}
            for line, (_, means) in zip(lines.names, figures, strict=True)
            for run, mean in zip(names, means, strict=True)
            if mean is not None
        ]
        span = {
            "data": {"values": values},
            "mark": {"type": "rule", "color": LINE, "strokeWidth": 3, "yOffset": lines.down},
            "encoding": {
                "y": lines.y(),
                "x": lines.x(number("mean", aggregate="min"), measure),
                "x2": {"field": "mean", "aggregate": "max"},
            },
        }
        columns = max(1, int(lines.width / (LEGEND_LENGTH * LETTER + ENTRY_ROOM)))
        legend = {
            "orient": "top",
            "columns": columns,
            "columnPadding": ENTRY_ROOM / 2,
            "labelLimit": 0,
        }
        dots = {
            "data": {"values": values},
            "mark": _point(90) | {"yOffset": lines.down},
            "encoding": {
                "y": lines.y(),
                "x": lines.x(number("mean"), measure),
                "color": name(
                    "run", title=None, scale={"domain": names, "range": SERIES}, legend=legend
                ),
                "shape": name("run", title=None, scale={"domain": names, "range": SHAPES}),
            },
        }
        return lines.layered({"values": [{"name": line} for line in lines.names]}, span, dots)

    return sized_chart(draw, label=f"{measure} by category of {', '.join(names)}")


def differences_chart(
    first: str, second: str, pairs: Sequence[tuple[float, float]], *, measure: str, scale: float
) -> SafeString:
    """Each query of two runs: a point by both values, and the differences, sorted, as bars; beside
    each other where there is room, else below each other.
    """
    values = [
        {"first": a * scale, "second": b * scale, "difference": (a - b) * scale, "place": place}
        for place, (a, b) in enumerate(sorted(pairs, key=lambda pair: pair[1] - pair[0]), start=1)
    ]
    whole = {"domain": [0, scale]}

    def draw(width: int) -> Spec:
        is_wide = width == SIZES["wide"]
        side = 400 if is_wide else min(360, width - AXIS_ROOM)
        rest = width - side - 2 * AXIS_ROOM - EDGES if is_wide else width - AXIS_ROOM
        names = distinct([first, second], int(side / LETTER) - len(measure) - 2)
        diagonal = {
            "data": {"values": [{"at": 0}, {"at": scale}]},
            "mark": {"type": "line", "color": MUTED, "strokeDash": [4, 4]},
            "encoding": {"x": number("at"), "y": number("at")},
        }
        points = {
            "mark": _point(45) | {"color": ACCENT, "opacity": 0.75},
            "encoding": {
                "x": number("second", title=f"{names[1]}: {measure}", scale=whole),
                "y": number("first", title=f"{names[0]}: {measure}", scale=whole),
            },
        }
        bars = {
            "mark": {"type": "bar", "stroke": None},
            "encoding": {
                "x": {
                    "field": "place",
                    "type": "ordinal",
                    "title": "queries by difference",
                    "axis": {"labels": False, "ticks": False},
                },
                "y": number("difference", title=f"difference in {measure}"),
                "color": {
                    "condition": {"test": "datum.difference > 0", "value": ACCENT},
                    "value": SERIES[2],
                },
            },
        }
        both = [
            {"layer": [diagonal, points], "width": side, "height": side},
            {**bars, "width": rest, "height": side if is_wide else 220},
        ]
        return {"data": {"values": values}, "hconcat" if is_wide else "vconcat": both}

    return sized_chart(
        draw, label=f"{measure} of {' and '.join(distinct([first, second]))}, query by query"
    )


class _Rows:
    """Rows of a chart with their names: beside them where it is wide, else above their marks."""

    def __init__(self, names: Sequence[str], width: int) -> None:
        self.beside = width == SIZES["wide"]
        most = ROW_NAME_LENGTH if self.beside else int((width - EDGES) / LETTER)
        self.names = distinct(names, most)
        self.down = 0 if self.beside else MARK_DOWN
        letters = max(map(len, self.names), default=0)
        self._room = LETTER * letters + NAME_GAP if self.beside else 0
        self.width = width - EDGES - self._room

    def x(self, field: Spec, title: str, *, zero: bool = True) -> Spec:
        """An axis of figures with as many ticks as its width takes."""
        ticks = max(3, int(self.width / FIGURE_ROOM))
        axis = {"tickCount": ticks, "labelFlush": False}
        return {**field, "title": title, "scale": {"zero": zero}, "axis": axis}

    def y(self) -> Spec:
        """With room for the longest name in whatever font the browser has."""
        axis = {
            "labelLimit": 0,
            "labelPadding": NAME_GAP,
            "minExtent": self._room,
            "grid": True,
            "ticks": False,
            "domain": False,
            "labelColor": TEXT,
        }
        return name("name", sort=self.names, title=None, axis=axis if self.beside else None)

    def layered(self, data: Spec, *marks: Spec) -> Spec:
        """The marks of data with the rows' names, and these above them unless an axis shows them.

        Marks with data of their own draw those.
        """
        text = {
            "mark": {
                "type": "text",
                "align": "left",
                "baseline": "middle",
                "color": TEXT,
                "fontSize": TEXT_SIZE,
                "yOffset": NAME_UP,
            },
            "encoding": {"y": self.y(), "x": {"value": 0}, "text": name("name")},
        }
        height = ROW_HEIGHT if self.beside else TALL_ROW_HEIGHT
        return {
            "data": data,
            "layer": [*marks] if self.beside else [*marks, text],
            "width": self.width,
            "height": max(1, len(self.names)) * height,
        }


def _point(size: int) -> Spec:
    return {"type": "point", "filled": True, "size": size, "opacity": 1}


def _tradeoff(points: Sequence[Point], *, x: str, measure: str, scale: float, width: int) -> Spec:
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
    written = "format(datum.value, datum.value < 1 ? '~g' : '~s')"
    encoding = {
        "x": number(
            "x",
            title=x,
            scale={"type": "log", "domain": [axis.low, axis.high], "nice": False},
            axis={
                "values": axis.ticks,
                "labelExpr": f"datum.value == {axis.zero!r} ? '0' : {written}"
                if axis.zero
                else written,
                "labelOverlap": False,
                "grid": True,
            },
        ),
        "y": number(
            "y",
            title=measure,
            scale={"domain": [y_low, y_high], "zero": False, "nice": False},
            axis={"tickCount": 6},
        ),
        "shape": name(
            "stage",
            title=None,
            scale={"domain": ["one stage", "two stages"], "range": ["circle", "diamond"]},
            legend={"orient": "top", "symbolFillColor": ACCENT}
            if len({value["stage"] for value in values}) > 1
            else None,
        ),
    }
    mark = _point(80) | {"color": ACCENT, "opacity": 0.9}
    layers: list[Spec] = [{"data": {"values": values}, "mark": mark, "encoding": encoding}]
    places = [
        (wide * axis.at(point.x), high * (y_high - point.y * scale) / (y_high - y_low))
        for point in points
    ]
    names = distinct([point.name for point in points], min(LABEL_LENGTH, int(wide / LETTER / 2)))
    texts = [
        (one,) if point.place is None else (one, f"#{point.place}")
        for one, point in zip(names, points, strict=True)
    ]
    # In pixels, and in one layer for each way to align: a layer for each name takes seconds.
    by_align: dict[Literal["left", "right", "center"], list[Spec]] = {}
    for label in place_labels(places, texts, width=wide, height=high):
        by_align.setdefault(label.align, []).append(
            {"text": label.text, "x": label.x, "y": label.y}
        )
    in_pixels = {"scale": None, "axis": None}
    for align, named in by_align.items():
        mark = {"type": "text", "align": align, "baseline": "middle"}
        layers.append(
            {
                "data": {"values": named},
                "mark": mark | {"color": TEXT, "fontSize": TEXT_SIZE},
                "encoding": {
                    "text": name("text"),
                    "x": number("x", **in_pixels),
                    "y": number("y", **in_pixels),
                },
            }
        )
    return {"layer": layers, "width": wide, "height": high}


def _padded(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin
