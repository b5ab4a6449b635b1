"""The chart of accuracy against training images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from django.utils.safestring import SafeString

from extras.species_task.measures import Group
from releases.charts import ACCENT, MUTED, TEXT, chart, name, number

HEIGHT: Final = 300


def training_chart(bins: Sequence[Group]) -> SafeString:
    """For each bin the smallest, the largest, the quartiles and the median of its species' top-1,
    with the number of species above, as iNat2017's figure 5.
    """
    edges = ("low", "first", "median", "third", "high")
    values = [
        {"images": group.name, "species": f"{len(group.counts):,}"}
        | dict(zip(edges, np.quantile(group.shares[:, 0], (0, 0.25, 0.5, 0.75, 1)), strict=True))
        for group in bins
    ]

    def layer(mark: dict[str, Any], low: str, high: str = "") -> dict[str, Any]:
        y = number(
            low, title="top-1 of a species", scale={"domain": [0, 1]}, axis={"format": ".0%"}
        )
        return {"mark": mark, "encoding": {"y": y} | ({"y2": {"field": high}} if high else {})}

    spec = {
        "data": {"values": values},
        "encoding": {"x": name("images", sort=None, title="training images")},
        "layer": [
            layer({"type": "rule", "color": MUTED}, "low", "high"),
            layer({"type": "bar", "color": ACCENT, "size": 18}, "first", "third"),
            layer({"type": "tick", "color": TEXT, "thickness": 2, "size": 18}, "median"),
            {"mark": {"type": "text", "color": MUTED}, "encoding": {"y": {"value": -8}}
             | {"text": {"field": "species"}}},
        ],
        "width": "container",
        "height": HEIGHT,
    }  # fmt: skip
    return chart(spec, label=f"Top-1 of species in {len(bins)} bins of training images")
