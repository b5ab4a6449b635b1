"""Progress of a command: a line written over on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from typing import Any

SECONDS_BETWEEN_LINES = 5.0


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
