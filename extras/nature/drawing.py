"""The charts of a query's nature page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.utils.safestring import SafeString

from extras.nature.figures import Nature, Row
from releases.charts import ACCENT, MUTED, chart, name, number

#: Pixels; a card on a phone has as many.
WIDTH: Final = 300
ROW_HEIGHT: Final = 26
_SERIES: Final = ("relevant images", "all images of these species")


def shares_chart(rows: Sequence[Row], found: Nature, *, label: str) -> SafeString:
    """Bars: which share of the relevant images has each value, beside which share of all has it."""
    values = [
        {"value": row.value, "of": series, "share": count / total}
        for row in rows
        for series, count, total in (
            (_SERIES[0], row.relevant, found.relevant),
            (_SERIES[1], row.images, found.images),
        )
        if total
    ]
    order = [row.value for row in rows]
    spec = {
        "data": {"values": values},
        "mark": {"type": "bar"},
        "encoding": {
            "y": name("value", sort=order, title=None, axis={"labelLimit": 130}),
            "yOffset": name("of", sort=list(_SERIES)),
            "x": number("share", title=None, axis={"format": ".0%", "tickCount": 3}),
            "color": name(
                "of",
                sort=list(_SERIES),
                scale={"domain": list(_SERIES), "range": [ACCENT, MUTED]},
                legend={"orient": "top", "title": None, "columns": 1},
            ),
        },
        "width": WIDTH - 140 if max(map(len, order)) > 8 else WIDTH - 60,
        "height": {"step": ROW_HEIGHT / 2, "for": "offset"},
    }
    return chart(spec, label=label, width=WIDTH)
