"""The leaderboard's charts: what they say, and that no name covers another."""

from itertools import pairwise

import pytest

from evaluation.leaderboard import charts
from evaluation.leaderboard.charts import Interval, Point
from releases.charts import (
    LABEL_LENGTH,
    SIZES,
    counts_axis,
    distinct,
    log_axis,
    place_labels,
    short,
)
from tests.releases.charts import drawn

pytestmark = pytest.mark.pure

LONG = "An ensemble of many models with a very long name, variant"


def texts(chart, size="wide"):
    return [element.text for element in drawn(chart)[size].iter() if element.text]


def test_names_stand_beside_their_points_and_never_on_each_other():
    alone = place_labels([(100, 50)], [("CLIP",)], width=300, height=100)
    assert [(one.text, one.x, one.y, one.align) for one in alone] == [("CLIP", 108, 50, "left")]
    at_the_edge = place_labels([(290, 50)], [("CLIP",)], width=300, height=100)
    assert at_the_edge[0].align == "right"
    crowd = [(150.0, 50.0)] * 30
    placed = place_labels(
        crowd, [("a long name", f"#{n}") for n in range(30)], width=300, height=100
    )
    assert 1 <= len(placed) < 30
    assert len({(one.x, one.y) for one in placed}) == len(placed)
    # Where a name doesn't fit, its place stands.
    names = [("first", "#1"), ("much too long a name", "#2")]
    placed = place_labels([(60.0, 10.0), (60.0, 30.0)], names, width=120, height=60)
    assert [one.text for one in placed] == ["first", "#2"]


def test_long_names_are_cut_in_the_middle_and_stay_distinct():
    name = "An ensemble of many models with a very long name, variant 7"
    assert short(name).startswith("An ensemble of many")
    assert short(name).endswith("variant 7")
    assert len(short(name)) <= LABEL_LENGTH
    assert distinct(["CLIP", "CLIP"]) == ["CLIP", "CLIP (2)"]
    assert distinct(["CLIP", "CLIP (2)", "CLIP"]) == ["CLIP", "CLIP (2)", "CLIP (3)"]
    alike = distinct([f"{LONG} {n} of them all" for n in range(30)])
    assert len(set(alike)) == 30
    assert max(map(len, alike)) <= LABEL_LENGTH


def test_intervals_name_every_run_in_the_order_given():
    rows = [Interval("better", 0.5, 0.4, 0.6), Interval("<worse> & co", 0.3, 0.25, 0.35)]
    chart = charts.interval_chart(rows, measure="mAP@50", scale=100)
    found = [text for text in texts(chart) if text in {"better", "<worse> & co"}]
    assert found == ["better", "<worse> & co"]
    assert 'aria-label="mAP@50 of 2 runs with 95 % confidence intervals"' in chart


@pytest.mark.parametrize("width", [238, 1018])
@pytest.mark.parametrize("values", [[3.0], [400.0, 430.0], [1e-6, 1e9], [0.0], [0.0, 7.0]])
def test_a_logarithmic_axis_holds_all_points_and_two_ticks_or_more(values, width):
    axis = log_axis(values, width)
    places = [axis.at(tick) * width for tick in axis.ticks]
    assert len(axis.ticks) - (0.0 in values) >= 2
    assert min(places) >= 0
    assert max(places) <= width
    assert all(later - before > 15 for before, later in pairwise(places))
    assert all(0 < axis.at(value) < 1 for value in values)
    assert (axis.zero is not None) == (0.0 in values)
    if axis.zero is not None:
        assert axis.at(0.0) < min(axis.at(value) for value in [*axis.ticks[1:], *values] if value)


def test_the_tradeoff_has_a_logarithmic_axis_and_tells_two_stages_apart():
    points = [Point("small", 100, 0.2, 2), Point("large", 10_000, 0.4, 1, two_stage=True)]
    chart = charts.tradeoff_chart(
        points, x="Parameters", unit="millions", measure="mAP@50", scale=100
    )
    found = texts(chart)
    assert {"small", "large", "one stage", "two stages"} <= set(found)
    assert {"100", "1k", "10k"} <= set(found)
    # What costs nothing stands at a zero of its own.
    points = [Point("free", 0.0, 0.2, 2), Point("dear", 2.0, 0.4, 1)]
    chart = charts.tradeoff_chart(points, x="Cost", unit="$", measure="mAP@50", scale=100)
    assert {"0", "1", "free", "dear"} <= set(texts(chart))
    with pytest.raises(ValueError, match="below 0"):
        charts.tradeoff_chart([Point("paid for", -1, 0.2)], x="Cost", unit="$", measure="", scale=1)


def test_categories_take_five_runs_and_leave_out_what_has_no_figure():
    rows = [("Human Impact", [0.2, None]), ("Species ID", [0.4, 0.1])]
    chart = charts.categories_chart(["one", "two"], rows, measure="mAP@50", scale=100)
    assert {"Human Impact", "Species ID", "one", "two"} <= set(texts(chart))
    # Each size has every name, in its own width.
    for size, drawing in drawn(chart).items():
        assert 0.9 * SIZES[size] < float(drawing.get("width")) < 1.1 * SIZES[size]
        assert {"one", "two"} <= set(texts(chart, size))
    pairs = [(0.5, 0.2), (0.1, 0.1)]
    chart = charts.differences_chart("one", "two", pairs, measure="AP@50", scale=100)
    assert {"one: AP@50", "two: AP@50", "difference in AP@50"} <= set(texts(chart))
    with pytest.raises(ValueError, match="6 runs"):
        charts.categories_chart(["x"] * 6, [], measure="", scale=1)


def test_counts_have_whole_ticks_that_do_not_repeat():
    expected = {0: [0], 2: [0, 1, 2], 5: [0, 2, 4], 13: [0, 5, 10], 12_345: [0, 5000, 10_000]}
    assert {most: counts_axis(most, 4)["values"] for most in expected} == expected
