"""The leaderboard's charts: what they say."""

import pytest

from evaluation.leaderboard import charts
from evaluation.leaderboard.charts import Interval, Point
from releases.charts import LABEL_LENGTH, counts_axis, distinct, log_axis, short
from tests.releases.charts import drawings

pytestmark = pytest.mark.pure

LONG = "An ensemble of many models with a very long name, variant"


def texts(chart):
    [drawing] = drawings(chart)
    return [element.text for element in drawing.iter() if element.text]


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


@pytest.mark.parametrize("values", [[3.0], [400.0, 430.0], [1e-6, 1e9], [0.0], [0.0, 7.0]])
def test_a_logarithmic_axis_holds_all_points_and_two_ticks_or_more(values):
    axis = log_axis(values)
    assert len(axis.ticks) - (0.0 in values) >= 2
    assert sorted(axis.ticks) == list(axis.ticks)
    shown = [*axis.ticks, *filter(None, values)]
    assert axis.low <= min(shown)
    assert max(shown) <= axis.high
    assert (axis.zero is not None) == (0.0 in values)
    if axis.zero is not None:
        assert axis.low < axis.zero < min(value for value in shown if value != axis.zero)


def test_the_tradeoff_has_a_logarithmic_axis_and_tells_two_stages_apart():
    points = [Point("small", 100, 0.2), Point("large", 10_000, 0.4, two_stage=True)]
    chart = charts.tradeoff_chart(
        points, x="Parameters", unit="millions", measure="mAP@50", scale=100
    )
    found = texts(chart)
    assert {"small", "large", "one stage", "two stages"} <= set(found)
    assert {"100", "1k", "10k"} <= set(found)
    # What costs nothing stands at a zero of its own.
    points = [Point("free", 0.0, 0.2), Point("dear", 2.0, 0.4)]
    chart = charts.tradeoff_chart(points, x="Cost", unit="$", measure="mAP@50", scale=100)
    assert {"0", "1", "free", "dear"} <= set(texts(chart))
    with pytest.raises(ValueError, match="below 0"):
        charts.tradeoff_chart([Point("paid for", -1, 0.2)], x="Cost", unit="$", measure="", scale=1)


def test_categories_take_five_runs_and_leave_out_what_has_no_figure():
    rows = [("Human Impact", [0.2, None]), ("Species ID", [0.4, 0.1])]
    chart = charts.categories_chart(["one", "two"], rows, measure="mAP@50", scale=100)
    assert {"Human Impact", "Species ID", "one", "two"} <= set(texts(chart))
    pairs = [(0.5, 0.2), (0.1, 0.1)]
    points, bars = charts.differences_charts("one", "two", pairs, measure="AP@50", scale=100)
    assert {"one: AP@50", "two: AP@50"} <= set(texts(points))
    assert "difference in AP@50" in texts(bars)
    many = [(number / 1000, 0.0) for number in range(1001)]
    _, bars = charts.differences_charts("one", "two", many, measure="AP@50", scale=100)
    assert bars.count('"place":') == charts.MOST_BARS
    assert '"difference":100.0' in bars.replace(" ", "")
    assert '"difference":0.0' in bars.replace(" ", "")
    with pytest.raises(ValueError, match="6 runs"):
        charts.categories_chart(["x"] * 6, [], measure="", scale=1)


def test_counts_have_whole_ticks_that_do_not_repeat():
    expected = {0: [0], 2: [0, 1, 2], 5: [0, 2, 4], 13: [0, 5, 10], 12_345: [0, 5000, 10_000]}
    assert {most: counts_axis(most, 4)["values"] for most in expected} == expected
