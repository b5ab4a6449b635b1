"""The leaderboard's charts: intervals, a measure against parameters, computation or cost,
categories, two runs. All fill their place, whatever its width.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from django.utils.safestring import SafeString

from releases.charts import (
    ACCENT,
    LABEL_LENGTH,
    LINE,
    MOST_SHAPES,
    MUTED,
    SERIES,
    SHAPES,
    TEXT,
    TEXT_SIZE,
    Spec,
    chart,
    distinct,
    log_axis,
    name,
    number,
)

#: In pixels: of a row, with its name above its marks, and of a chart without rows.
ROW_HEIGHT: Final = 40
HEIGHT: Final = 340
#: From the middle of a row to its name and to its marks.
NAME_UP: Final = -8
MARK_DOWN: Final = 9
#: Letters of a row's name, which fit the width of a phone.
ROW_NAME_LENGTH: Final = 42
LEGEND_LENGTH: Final = 30
#: Letters of a run's name in the title of an axis.
AXIS_NAME_LENGTH: Final = 28
MOST_BARS: Final = 300


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
    two_stage: bool = False


def interval_chart(rows: Sequence[Interval], *, measure: str, scale: float) -> SafeString:
    """A dot with its interval for each run, in the order given; figures times `scale`."""
    names = distinct([row.name for row in rows], ROW_NAME_LENGTH)
    values = [
        {"name": row_name, "low": row.low * scale, "high": row.high * scale}
        | {"mean": row.value * scale}
        for row_name, row in zip(names, rows, strict=True)
    ]
    x = _figures("low", measure, zero=False)
    rule = {
        "mark": {"type": "rule", "color": MUTED, "strokeWidth": 2},
        "encoding": {"x": x, "x2": {"field": "high"}},
    }
    dot = {"mark": _point(70) | {"color": ACCENT}, "encoding": {"x": number("mean")}}
    return chart(
        _in_rows(names, values, rule, dot),
        label=f"{measure} of {len(rows)} runs with 95 % confidence intervals",
    )


def tradeoff_chart(
    points: Sequence[Point], *, x: str, measure: str, scale: float, unit: str
) -> SafeString:
    """A measure against parameters, computation or cost, on a logarithmic axis, with the names that
    have room; a pointer that rests on a point shows its name.

    `unit` stands behind x's title. What is 0 stands left of the axis. ValueError: x below 0, or no
    point.
    """
    axis = log_axis([point.x for point in points])
    names = distinct([point.name for point in points], LABEL_LENGTH)
    values = [
        {
            "name": label,
            "whole": point.name,
            "x": point.x or axis.zero,
            "y": point.y * scale,
            "stage": "two stages" if point.two_stage else "one stage",
        }
        for label, point in zip(names, points, strict=True)
    ]
    text = "format(datum.value, datum.value < 1 ? '~g' : '~s')"
    encoding = {
        "x": number(
            "x",
            title=f"{x} ({unit})",
            scale={"type": "log", "domain": [axis.low, axis.high], "nice": False},
            axis={
                "values": axis.ticks,
                "labelExpr": f"datum.value == {axis.zero!r} ? '0' : {text}" if axis.zero else text,
                "labelOverlap": "greedy",
                "grid": True,
            },
        ),
        "y": number(
            "y",
            title=measure,
            scale={"domain": _padded([point.y * scale for point in points]), "nice": False},
            axis={"tickCount": 6},
        ),
    }
    stages = name(
        "stage",
        title=None,
        scale={"domain": ["one stage", "two stages"], "range": ["circle", "diamond"]},
        legend={"orient": "top", "symbolFillColor": ACCENT}
        if len({point.two_stage for point in points}) > 1
        else None,
    )
    dots = {
        "name": "points",
        "mark": _point(80) | {"color": ACCENT, "opacity": 0.9},
        "encoding": {"shape": stages, "tooltip": name("whole")},
    }
    labels = {
        "name": "names",
        "mark": {"type": "text", "color": TEXT, "fontSize": TEXT_SIZE},
        "encoding": {"text": name("name")},
    }
    spec = {
        "data": {"values": values},
        "encoding": encoding,
        "layer": [dots, labels],
        "width": "container",
        "height": HEIGHT,
    }
    return chart(spec, label=f"{measure} against {x.lower()} of {len(points)} runs")


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
    categories = distinct([category for category, _ in figures], ROW_NAME_LENGTH)
    values = [
        {"name": category, "run": run, "mean": mean * scale}
        for category, (_, means) in zip(categories, figures, strict=True)
        for run, mean in zip(names, means, strict=True)
        if mean is not None
    ]
    span = {
        "mark": {"type": "rule", "color": LINE, "strokeWidth": 3},
        "encoding": {
            "x": _figures("mean", measure) | {"aggregate": "min"},
            "x2": {"field": "mean", "aggregate": "max"},
        },
    }
    legend = {"orient": "top", "columns": 1, "labelLimit": 0}
    dots = {
        "mark": _point(90),
        "encoding": {
            "x": _figures("mean", measure),
            "color": name(
                "run", title=None, scale={"domain": names, "range": SERIES}, legend=legend
            ),
            "shape": name("run", title=None, scale={"domain": names, "range": SHAPES}),
        },
    }
    return chart(
        _in_rows(categories, values, span, dots),
        label=f"{measure} by category of {', '.join(names)}",
    )


def differences_charts(
    first: str, second: str, pairs: Sequence[tuple[float, float]], *, measure: str, scale: float
) -> tuple[SafeString, SafeString]:
    """Each query of two runs: a point by both values, and the differences, sorted, as bars; of
    more than MOST_BARS queries as many, evenly spaced.
    """
    digits = 2 if scale > 1 else 4
    scaled = [(round(a * scale, digits), round(b * scale, digits)) for a, b in pairs]
    places = [{"first": a, "second": b} for a, b in dict.fromkeys(scaled)]
    falling = sorted((round(a - b, digits) for a, b in scaled), reverse=True)
    shown = (
        np.linspace(0, len(falling) - 1, min(len(falling), MOST_BARS)).round().astype(int).tolist()
    )
    differences = [
        {"place": place, "difference": falling[at]} for place, at in enumerate(shown, start=1)
    ]
    whole = {"domain": [0, scale]}
    names = distinct([first, second], AXIS_NAME_LENGTH)
    diagonal = {
        "data": {"values": [{"at": 0}, {"at": scale}]},
        "mark": {"type": "line", "color": MUTED, "strokeDash": [4, 4]},
        "encoding": {"x": number("at"), "y": number("at")},
    }
    points = {
        "data": {"values": places},
        "mark": _point(45) | {"color": ACCENT, "opacity": 0.75},
        "encoding": {
            "x": number("second", title=f"{names[1]}: {measure}", scale=whole),
            "y": number("first", title=f"{names[0]}: {measure}", scale=whole),
        },
    }
    bars = {
        "data": {"values": differences},
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
    size = {"width": "container", "height": HEIGHT}
    about = f"{measure} of {' and '.join(distinct([first, second]))}, query by query"
    return (
        chart({**size, "layer": [diagonal, points]}, label=about),
        chart({**size, **bars}, label=f"{about}: differences"),
    )


def _in_rows(names: Sequence[str], values: Sequence[Spec], *marks: Spec) -> Spec:
    """Marks of the values, each in the row of its "name", which stands above them."""
    text = {
        "data": {"values": [{"name": row} for row in names]},
        "mark": {
            "type": "text",
            "align": "left",
            "baseline": "middle",
            "color": TEXT,
            "fontSize": TEXT_SIZE,
            "yOffset": NAME_UP,
        },
        "encoding": {"x": {"value": 0}, "text": name("name")},
    }
    return {
        "data": {"values": values},
        "encoding": {"y": name("name", sort=names, title=None, axis=None)},
        "layer": [
            *({**mark, "mark": mark["mark"] | {"yOffset": MARK_DOWN}} for mark in marks),
            text,
        ],
        "width": "container",
        "height": max(1, len(names)) * ROW_HEIGHT,
    }


def _figures(field: str, title: str, *, zero: bool = True) -> Spec:
    return number(field, title=title, scale={"zero": zero}, axis={"labelFlush": False})


def _point(size: int) -> Spec:
    return {"type": "point", "filled": True, "size": size, "opacity": 1}


def _padded(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin
