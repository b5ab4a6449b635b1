"""The pictures of a release's statistics, as SVG."""

from __future__ import annotations

import math
import re
from typing import Any, Final

import altair as alt
from django.templatetags.static import static
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from benchmark.charts import ACCENT, SERIES, TEXT, chart_svg
from benchmark.statistics.numbers import CELL, Numbers

#: Pixels: every picture is as wide as a card on a phone, so that its letters stay readable there
#: and are of one size; wider pages scale it up.
TOTAL_WIDTH: Final = 300
#: Of the drawing area beside an axis of numbers.
WIDTH: Final = 225
HEIGHT: Final = 140
ROW_HEIGHT: Final = 19
LABEL_SIZE: Final = 11
LABEL_LIMIT: Final = 185
#: Width of a letter of a name, generously.
LETTER: Final = 0.58 * LABEL_SIZE
#: Lines of one picture that can be told apart.
MOST_LINES: Final = len(SERIES)
DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4])
#: Of the map, in degrees: Antarctica is left out.
SOUTH, NORTH = -60, 84
LARGEST_DOT: Final = 4.5
SMALLEST_DOT: Final = 1.1
_SIZE: Final = re.compile(r'width="([\d.]+)" height="([\d.]+)" viewBox="[^"]*"')
SPLITS: Final = {"val": "Validation", "test": "Test"}


def _framed(chart: Any, *, label: str) -> SafeString:
    """A chart of TOTAL_WIDTH; what is left over goes to its left, where names stand that are wider
    in the reader's letters than in those that they were measured by.
    """
    svg = chart_svg(chart, label=label)
    width, height = (float(one) for one in _SIZE.search(svg).groups())  # type: ignore[union-attr]
    whole = max(TOTAL_WIDTH, width)
    frame = (
        f'width="{whole:g}" height="{height:g}" viewBox="{width - whole:g} 0 {whole:g} {height:g}"'
    )
    return mark_safe(_SIZE.sub(frame, svg, count=1))


def edge(value: float) -> str:
    """The lower end of a bin, short enough to stand below its bar."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def histogram(summary: Numbers, *, x: str, y: str, label: str) -> SafeString:
    values = [{"bin": edge(low), "count": count} for low, _, count in summary["bins"]]
    chart = (
        alt.Chart(alt.Data(values=values))
        .mark_bar(color=ACCENT)
        .encode(
            x=alt.X(
                "bin:N", sort=None, title=x, axis=alt.Axis(labelAngle=0, domain=True, ticks=False)
            ),
            y=alt.Y("count:Q", title=y, axis=alt.Axis(tickCount=4, format=",d", tickMinStep=1)),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    return _framed(chart, label=label)


def stacked(rows: list[Numbers], *, name: str, label: str, group: str | None = None) -> SafeString:
    """Bars of queries by name, validation and test beside each other; under headings by group."""
    values = [
        {"name": row[name] or "None", "split": title, "queries": row[split]}
        | ({"group": row[group]} if group else {})
        for row in rows
        for split, title in SPLITS.items()
    ]
    order = [row[name] or "None" for row in rows]
    chart = (
        alt.Chart()
        .mark_bar()
        .encode(
            x=alt.X(
                "queries:Q", title="queries", axis=alt.Axis(tickCount=3, tickMinStep=1, format=",d")
            ),
            y=alt.Y(
                "name:N",
                title=None,
                sort=order,
                axis=alt.Axis(
                    labelLimit=LABEL_LIMIT, labelColor=TEXT, ticks=False, labelFontSize=LABEL_SIZE
                ),
            ),
            color=alt.Color(
                "split:N",
                scale=alt.Scale(domain=list(SPLITS.values()), range=list(SERIES[1::-1])),
                legend=alt.Legend(orient="top", title=None),
            ),
            order=alt.Order("split:N", sort="descending"),
        )
        .properties(width=_beside(order), height=alt.Step(ROW_HEIGHT))
    )
    if group is None:
        return _framed(chart.properties(data=alt.Data(values=values)), label=label)
    heading = alt.Header(
        title=None, labelOrient="top", labelAnchor="start", labelFontWeight="bold", labelPadding=4
    )
    faceted = (
        chart.properties(data=alt.Data(values=values))
        .facet(row=alt.Row("group:N", header=heading), spacing=8)
        .resolve_scale(y="independent")
    )
    return _framed(faceted, label=label)


def lines(at: list[int], lines: list[Numbers], *, label: str) -> SafeString:
    """Shares against ranks, one line for each of at most MOST_LINES."""
    names = [line["name"] for line in lines]
    values = [
        {"line": line["name"], "rank": rank, "share": share}
        for line in lines
        for rank, share in zip(at, line["shares"], strict=True)
    ]
    chart = (
        alt.Chart(alt.Data(values=values))
        .mark_line(point=alt.OverlayMarkDef(size=18), strokeWidth=2)
        .encode(
            x=alt.X(
                "rank:Q",
                title="rank",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(values=[1, 10, 100, 1000], format=",d"),
            ),
            y=alt.Y(
                "share:Q",
                title="share found",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format=".0%", tickCount=5),
            ),
            color=alt.Color(
                "line:N",
                sort=names,
                scale=alt.Scale(domain=names, range=list(SERIES[: len(names)])),
                legend=alt.Legend(orient="top", title=None, columns=2, symbolType="stroke"),
            ),
            strokeDash=alt.StrokeDash(
                "line:N",
                sort=names,
                scale=alt.Scale(domain=names, range=list(DASHES[: len(names)])),
            ),
        )
        .properties(width=WIDTH, height=HEIGHT + 30)
    )
    return _framed(chart, label=label)


def bars(rows: list[tuple[str, int]], *, x: str, label: str) -> SafeString:
    """Bars by name, in the rows' order."""
    chart = (
        alt.Chart(alt.Data(values=[{"name": name, "count": count} for name, count in rows]))
        .mark_bar(color=ACCENT)
        .encode(
            x=alt.X("count:Q", title=x, axis=alt.Axis(tickCount=3, tickMinStep=1, format=",d")),
            y=alt.Y(
                "name:N",
                title=None,
                sort=None,
                axis=alt.Axis(
                    labelLimit=LABEL_LIMIT, labelColor=TEXT, ticks=False, labelFontSize=LABEL_SIZE
                ),
            ),
        )
        .properties(width=_beside([name for name, _ in rows]), height=alt.Step(ROW_HEIGHT))
    )
    return _framed(chart, label=label)


def dots(cells: list[list[int]], *, label: str) -> SafeString:
    """Dots on an equirectangular map, their areas as the cells' counts, over the land of
    `static/img/world.svg` (Natural Earth). The page's style sheet gives the colours.
    """
    largest = cells[0][2]
    circles = []
    for south, west, count in cells:
        radius = max(LARGEST_DOT * math.sqrt(count / largest), SMALLEST_DOT)
        x, y = west + CELL / 2, -max(south + CELL / 2, SOUTH + CELL / 2)
        circles.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:.2f}"/>')
    return mark_safe(
        f'<svg role="img" aria-label="{escape(label)}" class="world-map" '
        f'viewBox="-180 {-NORTH} 360 {NORTH - SOUTH}">'
        f'<use class="land" href="{static("img/world.svg")}#land"/>'
        f'<g class="dots">{"".join(circles)}</g></svg>'
    )


def _beside(names: list[str]) -> float:
    """The width that is left for bars beside their names."""
    longest = max(map(len, names)) * LETTER
    return TOTAL_WIDTH - min(longest, LABEL_LIMIT * 1.15) - 12
