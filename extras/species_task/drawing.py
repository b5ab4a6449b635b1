"""The chart of accuracy against training images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.utils.safestring import SafeString

from extras.species_task.measures import QUARTILES
from releases.charts import ACCENT, MUTED, TEXT, chart, name, number

HEIGHT: Final = 300


def training_chart(bins: Sequence[dict[str, Any]]) -> SafeString:
    """The quartiles of `figures` of each bin, with its number of species above, as iNat2017's
    figure 5.
    """
    low, first, median, third, high = QUARTILES

    def layer(mark: dict[str, Any], low: str, high: str = "") -> dict[str, Any]:
        y = number(
            low, title="top-1 of a species", scale={"domain": [0, 1]}, axis={"format": ".0%"}
        )
        return {"mark": mark, "encoding": {"y": y} | ({"y2": {"field": high}} if high else {})}

    spec = {
        "data": {"values": bins},
        "encoding": {"x": name("name", sort=None, title="training images")},
        "layer": [
            layer({"type": "rule", "color": MUTED}, low, high),
            layer({"type": "bar", "color": ACCENT, "size": 18}, first, third),
            layer({"type": "tick", "color": TEXT, "thickness": 2, "size": 18}, median),
            {"mark": {"type": "text", "color": MUTED}, "encoding": {"y": {"value": -8}}
             | {"text": number("species", format=",d")}},
        ],
        "width": "container",
        "height": HEIGHT,
    }  # fmt: skip
    return chart(spec, label=f"Top-1 of species in {len(bins)} bins of training images")
