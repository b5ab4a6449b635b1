"""Ticks of charts' axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

#: Ticks of a logarithmic axis stand no closer than this, in pixels.
TICK_ROOM: Final = 40


def counts_axis(most: int, ticks: int) -> dict[str, Any]:
    """An axis of counts from 0 to `most`, with at most about `ticks` whole numbers."""
    step = max(1, math.ceil(most / ticks))
    power = 10 ** (len(str(step)) - 1)
    step = next(one * power for one in (1, 2, 5, 10) if one * power >= step)
    return {"values": list(range(0, most + 1, step)), "format": ",d"}


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis; where something is 0, that has a place of its own at its low end."""

    low: float
    high: float
    ticks: tuple[float, ...]
    """At least two, ascending."""
    zero: float | None
    """The value at whose place 0 is drawn."""

    def at(self, value: float) -> float:
        """Where a value stands, from 0 at the low end to 1."""
        shown = self.zero if value == 0 and self.zero is not None else value
        return math.log(shown / self.low) / math.log(self.high / self.low)


def log_axis(values: Sequence[float], width: float) -> LogAxis:
    """An axis of `width` pixels around all values, with ticks at 1, 2 and 5 times powers of ten,
    or at powers alone where those are enough or the others too close.

    ValueError: a value below 0, or no value.
    """
    if min(values) < 0:
        raise ValueError("a logarithmic axis has no place below 0")
    above = [value for value in values if value > 0] or [1.0]
    low, high = min(above), max(above)
    room = max(1.3, (high / low) ** 0.12)
    low, high = low / room, high * room
    ticks = _ticks(low, high, (1, 2, 5))
    if len(ticks) < 2:
        around = _ticks(low / 10, high * 10, (1, 2, 5))
        below = max(one for one in around if one <= low)
        beyond = min(one for one in around if one >= high)
        ticks = [below, *ticks, beyond]
        low, high = below / 1.1, beyond * 1.1
    powers = _ticks(low, high, (1,))
    if len(powers) > 1 and (len(ticks) * TICK_ROOM > width or len(powers) > 3):
        apart = math.ceil(len(powers) * TICK_ROOM / width)
        ticks = powers[::apart] if len(powers) > apart else [powers[0], powers[-1]]
    if min(values) > 0:
        return LogAxis(low, high, tuple(ticks), None)
    span = high / low
    zero = low / span**0.1
    return LogAxis(zero / span**0.08, high, (zero, *ticks), zero)


def _ticks(low: float, high: float, steps: Sequence[int]) -> list[float]:
    """The steps times powers of ten from `low` to `high`."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [
        step * 10.0**power
        for power in powers
        for step in steps
        if low <= step * 10.0**power <= high
    ]
