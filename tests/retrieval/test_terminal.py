import io

import pytest

from core import terminal
from core.terminal import Pace, ProgressLine, bar, duration


@pytest.fixture
def clock(monkeypatch):
    """Sets the time that progress is measured by."""
    now = [100.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])

    def at(seconds):
        now[0] = 100.0 + seconds

    return at


def test_a_pace_says_how_fast_and_how_long(clock):
    pace = Pace()
    clock(10)
    said = pace.line(120_000, 480_000, "images")
    assert said.endswith("] 120,000 of 480,000 images, 12,000 a second, 30 s left")
    clock(40)
    assert pace.line(480_000, 480_000, "images").endswith("12,000 a second")


def test_a_pace_follows_a_change_of_speed(clock):
    pace = Pace()
    for second in range(1, 101):
        clock(second)
        pace.line(10 * second, 100_000, "images")
    for second in range(101, 201):
        clock(second)
        said = pace.line(1000 + 1000 * (second - 100), 200_000, "images")
    assert "1,000 a second, 1 min 39 s left" in said


def test_a_pace_without_a_start_or_an_end(clock):
    assert Pace().line(0, 0, "images").endswith("0 of 0 images, 0 a second")
    assert Pace().share(0, 0).endswith("] 100 %")
    pace = Pace()
    clock(1)
    assert pace.share(1, 3).endswith("] 33 %, 2 s left")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.4, "0 s"), (59.6, "1 min 0 s"), (61, "1 min 1 s"), (3600 * 5 + 61, "5 h 1 min")],
)
def test_time_spans_have_two_units(seconds, said):
    assert duration(seconds) == said


def test_a_bar_is_full_when_all_is_done():
    assert [bar(0, 4, width=4), bar(3, 4, width=4), bar(9, 4, width=4)] == [
        "[----]",
        "[###-]",
        "[####]",
    ]


def test_away_from_a_terminal_lines_come_now_and_then(clock):
    stream = io.StringIO()
    line = ProgressLine(stream)
    for second, text in [(0, "a"), (6, "b"), (7, "c"), (12, "d")]:
        clock(second)
        line.show(text)
    assert stream.getvalue() == "a\nb\nd\n"
