"""Progress of a command: a line written over on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

SECONDS_BETWEEN_LINES = 5.0
# How far back a pace looks: long enough for a steady figure, short enough to follow a change.
PACE_SECONDS = 30.0


class ProgressLine:
    """Shows one changing line on a text stream."""

    def __init__(self, stream: Any, *, quiet: bool = False) -> None:
        self._stream = stream
        self._quiet = quiet
        self._terminal = bool(stream.isatty())
        self._last = 0.0
        self._width = 0

    def show(self, line: str) -> None:
        """Replace the line; away from a terminal at most one every 5 seconds is written."""
        if self._quiet:
            return
        if self._terminal:
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        elif time.monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            self._stream.write(line + "\n")
        self._stream.flush()

    def end(self) -> None:
        """Leave the line standing, so that other output begins on the next."""
        if self._width:
            self._stream.write("\n")
            self._stream.flush()
            self._width = 0


class Pace:
    """How fast something goes, and how long it still takes at the speed of the last half minute.

    One for each phase of work, made when the phase begins.
    """

    def __init__(self) -> None:
        self._seen = deque([(time.monotonic(), 0)])

    def line(self, done: int, total: int, unit: str) -> str:
        """Say how far it is, such as [##--] 120,000 of 480,000 images, 60,000 a second, 6 s left.

        Call it with a `done` that never falls.
        """
        rate, left = self._rate(done, total)
        return f"{bar(done, total)} {done:,} of {total:,} {unit}, {rate:,.0f} a second{left}"

    def share(self, done: int, total: int) -> str:
        """Say how far something without a unit for people is, such as [##--] 50 %, 6 s left."""
        _rate, left = self._rate(done, total)
        return f"{bar(done, total)} {100 * done // total if total else 100} %{left}"

    def _rate(self, done: int, total: int) -> tuple[float, str]:
        now = time.monotonic()
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[1][0] >= PACE_SECONDS:
            self._seen.popleft()
        since, before = self._seen[0]
        rate = (done - before) / max(now - since, 0.001)
        left = f", {duration((total - done) / rate)} left" if rate and done < total else ""
        return rate, left


def bar(done: int, total: int, *, width: int = 30) -> str:
    """Draw how much is done, such as [##########----------]."""
    filled = width * min(done, total) // total if total else width
    return "[" + "#" * filled + "-" * (width - filled) + "]"


def duration(seconds: float) -> str:
    """Write a time span in the two largest of its units, such as 1 h 5 min."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
