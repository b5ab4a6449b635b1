"""How many images are encoded at once: found by trial, on the work itself."""

from __future__ import annotations

from typing import Final

GAIN: Final = 1.03
"""A larger batch must bring this many times the images a second of the best to be worth it."""
MISSES: Final = 2
"""So many doublings in a row that aren't end the trial; one alone may have had a slow moment."""
TRIES: Final = 2
TRY_SECONDS: Final = 0.25
"""So many batches of a size are timed, for so long at least; the fastest counts, since the first of
a size is often slow, and others when the machine has something else to do."""


class BatchSize:
    """Doubles the size while that makes the device faster and its memory suffices.

    Sizes are powers of two times `first`, at most `largest`. Nothing is encoded for the trial
    alone: the batches of the work are timed until it is settled.
    """

    def __init__(self, *, first: int, largest: int) -> None:
        self.now = first
        self.settled = first >= largest
        self._largest = largest
        self._best = (0.0, first)
        self._misses = 0
        self._times: list[float] = []

    @classmethod
    def fixed(cls, size: int) -> BatchSize:
        """A size that somebody chose; only a lack of memory makes it smaller."""
        return cls(first=size, largest=size)

    def measured(self, count: int, seconds: float) -> None:
        """Learn how long a batch of `count` images took the device; other sizes than `now` tell
        nothing.
        """
        if self.settled or count != self.now:
            return
        self._times.append(seconds)
        if len(self._times) < TRIES or sum(self._times) < TRY_SECONDS:
            return
        rate = self.now / max(min(self._times), 1e-9)
        self._times = []
        if rate > self._best[0] * GAIN:
            self._best, self._misses = (rate, self.now), 0
        else:
            self._misses += 1
        self.settled = self._misses == MISSES or self.now * 2 > self._largest
        self.now = self._best[1] if self.settled else self.now * 2

    def short_of_memory(self, count: int) -> None:
        """Learn that `count` images at once are too many."""
        self._largest = min(self._largest, max(1, count // 2))
        self.now = min(self._best[1], self._largest)
        self.settled = True
        self._times = []
