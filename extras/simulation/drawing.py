"""The chart of a simulation: recall by labels, and where the stops are."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from django.utils.safestring import SafeString

from extras.simulation.forms import ORDER_TITLES
from extras.simulation.measures import ideal_curve
from extras.simulation.report import Figures
from releases.charts import (
    MOST_SHAPES,
    SERIES,
    SHAPES,
    TEXT,
    chart,
    name,
    number,
)

IDEAL: Final = "All relevant first"
DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 1])
#: In pixels.
HEIGHT: Final = 340


def recall_chart(figures: Figures) -> SafeString:
    """The recall of each order after so many labels, beside a random order's expectation and the
    best there can be, and where each stop rule stops on average. What a reader screens is left
    out: its order is that of the reader.
    """
    labels = np.array(figures["curve_labels"])
    curves = {
        ORDER_TITLES.get(row["order"], row["order"]): row["curve"]
        for row in figures["orders"]
        if not row["order"].startswith("screened ")
    }
    curves[ORDER_TITLES["random"]] = (labels / figures["images"]).tolist()
    curves[IDEAL] = ideal_curve(figures["relevant"], labels).tolist()
    lines = [
        {"order": order, "labels": at, "recall": recall}
        for order, curve in curves.items()
        for at, recall in zip(figures["curve_labels"], curve, strict=True)
    ]
    names = list(dict.fromkeys([*ORDER_TITLES.values(), IDEAL, *curves]))
    rules = list(dict.fromkeys(row["stop"] for row in figures["stops"]))[:MOST_SHAPES]
    stops = [
        {
            "order": ORDER_TITLES.get(row["order"], row["order"]),
            "stop": row["stop"],
            "labels": row["labels"],
            "recall": row["recall"],
        }
        for row in figures["stops"]
        if row["stop"] in rules and not row["order"].startswith("screened ")
    ]

    columns = {"expr": "width < 400 ? 2 : 4"}
    legend: dict[str, Any] = {"orient": "top", "title": None, "columns": columns}
    scale = {"domain": names, "range": SERIES[: len(names)]}
    encoding = {
        "x": number(
            "labels",
            title="labels",
            scale={"type": "sqrt", "nice": False},
            axis={"format": ",d", "tickCount": 20, "labelOverlap": "greedy"},
        ),
        "y": number(
            "recall",
            title="relevant images found",
            scale={"domain": [0, 1]},
            axis={"format": ".0%", "tickCount": 5},
        ),
        "color": name("order", scale=scale, legend=legend | {"symbolType": "stroke"}),
    }
    dashes = name("order", scale={"domain": names, "range": DASHES}, legend=legend)
    shapes = name(
        "stop",
        scale={"domain": rules, "range": SHAPES[: len(rules)]},
        legend=legend | {"orient": "bottom", "symbolFillColor": TEXT},
    )
    spec = {
        "layer": [
            {
                "data": {"values": lines},
                "mark": {"type": "line", "strokeWidth": 2, "interpolate": "step-after"},
                "encoding": {**encoding, "strokeDash": dashes},
            },
            {
                "data": {"values": stops},
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {**encoding, "shape": shapes},
            },
        ],
        "width": "container",
        "height": HEIGHT,
    }
    return chart(spec, label=f"Recall by labels of query {figures['query_id']}")
