"""The leaderboard's pictures: what they say, and that no name covers another."""

import re
import xml.etree.ElementTree as ET

import pytest

from benchmark import leaderboard_charts as charts
from benchmark.leaderboard_charts import Interval, Point, place_labels


def texts(svg):
    return [element.text for element in ET.fromstring(svg).iter() if element.text]


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


def test_where_a_name_does_not_fit_its_place_stands():
    points = [(60.0, 10.0), (60.0, 30.0)]
    placed = place_labels(
        points, [("first", "#1"), ("much too long a name", "#2")], width=120, height=60
    )
    assert [one.text for one in placed] == ["first", "#2"]


def test_long_names_are_cut_in_the_middle_and_stay_distinct():
    name = "An ensemble of many models with a very long name, variant 7"
    assert charts.short(name).startswith("An ensemble of many")
    assert charts.short(name).endswith("variant 7")
    assert len(charts.short(name)) <= charts.LABEL_LENGTH
    assert charts.distinct(["CLIP", "CLIP"]) == ["CLIP", "CLIP (2)"]


def test_intervals_name_every_run_in_the_order_given():
    rows = [Interval("better", 0.5, 0.4, 0.6), Interval("<worse> & co", 0.3, 0.25, 0.35)]
    svg = charts.interval_svg(rows, measure="mAP@50", scale=100)
    assert [text for text in texts(svg) if text in {"better", "<worse> & co"}] == [
        "better",
        "<worse> & co",
    ]
    assert 'aria-label="mAP@50 of 2 runs with 95 % confidence intervals"' in svg


def test_the_tradeoff_has_a_logarithmic_axis_and_tells_two_stages_apart():
    points = [Point("small", 100, 0.2, 2), Point("large", 10_000, 0.4, 1, two_stage=True)]
    svg = charts.tradeoff_svg(points, x="Parameters", unit="millions", measure="mAP@50", scale=100)
    found = texts(svg)
    assert {"small", "large", "one stage", "two stages"} <= set(found)
    assert {"100", "1k", "10k"} <= set(found)
    with pytest.raises(ValueError, match="above 0"):
        charts.tradeoff_svg([Point("free", 0, 0.2)], x="Cost", unit="$", measure="", scale=1)


def test_a_single_point_is_drawn():
    svg = charts.tradeoff_svg(
        [Point("only", 150, 0.0)], x="Parameters", unit="millions", measure="mAP@50", scale=100
    )
    assert "only" in texts(svg)


def test_categories_take_five_runs_and_leave_out_what_has_no_figure():
    rows = [("Human Impact", [0.2, None]), ("Species ID", [0.4, 0.1])]
    svg = charts.categories_svg(["one", "two"], rows, measure="mAP@50", scale=100)
    assert {"Human Impact", "Species ID", "one", "two"} <= set(texts(svg))
    assert len(re.findall('aria-roledescription="point"', svg)) == 3
    with pytest.raises(ValueError, match="6 runs"):
        charts.categories_svg(["x"] * 6, [], measure="", scale=1)


def test_two_runs_are_drawn_query_by_query():
    svg = charts.differences_svg("one", "two", [(0.5, 0.2), (0.1, 0.1)], measure="AP@50", scale=100)
    assert {"one: AP@50", "two: AP@50", "difference in AP@50"} <= set(texts(svg))
    assert len(re.findall('aria-roledescription="bar"', svg)) == 2
