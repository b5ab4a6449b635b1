"""The charts of a release's statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.utils.safestring import SafeString

from releases.charts import ACCENT, SERIES, TEXT, Spec, chart, counts_axis, name, number
from releases.statistics.numbers import Numbers

#: Pixels: every chart is as wide as a card on a phone, so that its letters stay readable there
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
#: Lines of one chart that can be distinguished.
MOST_LINES: Final = len(SERIES)
DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4])
SPLITS: Final = {"val": "Validation", "test": "Test"}
#: Ticks of an axis of counts, about.
TICKS: Final = 4
_NAMES: Final[dict[str, Any]] = {
    "labelLimit": LABEL_LIMIT,
    "labelColor": TEXT,
    "ticks": False,
    "labelFontSize": LABEL_SIZE,
}


def edge(value: float) -> str:
    """The lower end of a bin, short enough to stand below its bar."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def histogram(
    summary: Numbers, *, x: str, y: str, label: str, edge: Callable[[float], str] = edge
) -> SafeString:
    """Bars of counts by bin; `edge` names the lower end of a bin."""
    values = [{"bin": edge(low), "count": count} for low, _, count in summary["bins"]]
    most = max((value["count"] for value in values), default=0)
    spec = {
        "data": {"values": values},
        "mark": {"type": "bar", "color": ACCENT},
        "encoding": {
            "x": name(
                "bin", sort=None, title=x, axis={"labelAngle": 0, "domain": True, "ticks": False}
            ),
            "y": number("count", title=y, axis=counts_axis(most, TICKS)),
        },
        "width": WIDTH,
        "height": HEIGHT,
    }
    return _framed(spec, label=label)


def stacked(rows: list[Numbers], *, key: str, label: str, group: str | None = None) -> SafeString:
    """Bars of queries by `key`, validation and test beside each other; under headings by group."""
    values = [
        {"name": row[key] or "None", "split": title, "queries": row[split]}
        | ({"group": row[group]} if group else {})
        for row in rows
        for split, title in SPLITS.items()
    ]
    order = [row[key] or "None" for row in rows]
    most = max(sum(row[split] for split in SPLITS) for row in rows)
    spec = {
        "mark": "bar",
        "encoding": {
            "x": number("queries", title="queries", axis=counts_axis(most, TICKS)),
            "y": name("name", title=None, sort=order, axis=_NAMES),
            "color": name(
                "split",
                scale={"domain": list(SPLITS.values()), "range": SERIES[1::-1]},
                legend={"orient": "top", "title": None},
            ),
            "order": name("split", sort="descending"),
        },
        "width": _beside(order),
        "height": {"step": ROW_HEIGHT},
    }
    if group is not None:
        header = {
            "title": None,
            "labelOrient": "top",
            "labelAnchor": "start",
            "labelFontWeight": "bold",
            "labelPadding": 4,
        }
        spec = {
            "facet": {"row": name("group", header=header)},
            "spec": spec,
            "spacing": 8,
            "resolve": {"scale": {"y": "independent"}},
        }
    return _framed({"data": {"values": values}, **spec}, label=label)


def lines(at: list[int], lines: list[Numbers], *, label: str) -> SafeString:
    """Shares against ranks, one line for each of at most MOST_LINES."""
    names = [line["name"] for line in lines]
    values = [
        {"line": line["name"], "rank": rank, "share": share}
        for line in lines
        for rank, share in zip(at, line["shares"], strict=True)
    ]
    spec = {
        "data": {"values": values},
        "mark": {"type": "line", "point": {"size": 18}, "strokeWidth": 2},
        "encoding": {
            "x": number(
                "rank",
                title="rank",
                scale={"type": "log"},
                axis={"values": [1, 10, 100, 1000], "format": ",d"},
            ),
            "y": number(
                "share",
                title="relevant images found",
                scale={"domain": [0, 1]},
                axis={"format": ".0%", "tickCount": 5},
            ),
            "color": name(
                "line",
                sort=names,
                scale={"domain": names, "range": SERIES[: len(names)]},
                legend={"orient": "top", "title": None, "columns": 2, "symbolType": "stroke"},
            ),
            "strokeDash": name(
                "line", sort=names, scale={"domain": names, "range": DASHES[: len(names)]}
            ),
        },
        "width": WIDTH,
        "height": HEIGHT + 30,
    }
    return _framed(spec, label=label)


def bars(rows: list[tuple[str, int]], *, x: str, label: str) -> SafeString:
    """Bars by name, in the rows' order."""
    axis = counts_axis(max(count for _, count in rows), TICKS)
    spec = {
        "data": {"values": [{"name": title, "count": count} for title, count in rows]},
        "mark": {"type": "bar", "color": ACCENT},
        "encoding": {
            "x": number("count", title=x, axis=axis),
            "y": name("name", title=None, sort=None, axis=_NAMES),
        },
        "width": _beside([title for title, _ in rows]),
        "height": {"step": ROW_HEIGHT},
    }
    return _framed(spec, label=label)


def _beside(names: list[str]) -> float:
    """The width that is left for bars beside their names."""
    longest = max(map(len, names)) * LETTER
    return TOTAL_WIDTH - min(longest, LABEL_LIMIT * 1.15) - 12


def _framed(spec: Spec, *, label: str) -> SafeString:
    """A chart of TOTAL_WIDTH; what is left over goes to its left, where names stand that are wider
    in the reader's letters than in those that they were measured by.
    """
    return chart(spec, label=label, width=TOTAL_WIDTH)
