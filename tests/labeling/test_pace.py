"""Spans of time and the pace of a team, as people read them."""

from __future__ import annotations

from datetime import date

import pytest

from core.templatetags.durations import duration
from labeling.review.pace import Bar, TeamProgress, pace_sentence

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (3569, "59 min"),
        (3599, "1 h 00 min"),
        (11_100, "3 h 05 min"),
        (648_000, "180 h 00 min"),
    ],
)
def test_spans_of_time_as_people_read_them(seconds, text):
    assert duration(seconds) == text


def test_the_pace_sentence_counts_on_exactly():
    today, due = date(2026, 1, 19), date(2026, 2, 22)
    said = pace_sentence(left=38, completed=12, today=today, due=due)
    assert said == (
        "At the pace of the last 14 days, 38 queries still to complete take until March 5, "
        "11 days after the date."
    )
    start = "At the pace of the last 14 days, 1 query still to complete takes until "
    assert pace_sentence(left=1, completed=14, today=today, due=None) == f"{start}January 20."
    for day, words in ((20, "the date itself"), (21, "1 day before the date")):
        said = pace_sentence(left=1, completed=14, today=today, due=date(2026, 1, day))
        assert said == f"{start}January 20, {words}."
    said = pace_sentence(left=1200, completed=28, today=today, due=None)
    assert said.endswith("1,200 queries still to complete take until September 11, 2027.")
    assert pace_sentence(left=9999, completed=1, today=today, due=due).endswith("than ten years.")
    assert pace_sentence(left=0, completed=3, today=today, due=due) == "Every query is complete."
    assert pace_sentence(left=2, completed=0, today=today, due=due) == (
        "No query was completed in the last 14 days, so nothing tells when the 2 queries still to "
        "complete by February 22 are done."
    )


def test_judgments_by_day_are_said_in_the_order_of_the_bars():
    bars = [
        Bar(date(2026, 1, 18 + n), judgments, x=0, y=0, height=0)
        for n, judgments in enumerate((3, 0, 1200))
    ]
    team = TeamProgress([], 0, 0, "", bars)
    assert team.judgments_by_day == "3, 0, 1200"
