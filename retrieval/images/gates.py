"""What threads wait at until there is room for them, or it is their turn."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Budget:
    """Lets threads in as long as what they hold together stays within a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._door = threading.Lock()
        self._changed = threading.Condition()

    @contextmanager
    def held(self, amount: int) -> Iterator[None]:
        """Wait for room, in the order of arrival; what is larger than the limit is let in alone."""
        with self._door, self._changed:
            self._changed.wait_for(lambda: not self._held or self._held + amount <= self._limit)
            self._held += amount
        try:
            yield
        finally:
            with self._changed:
                self._held -= amount
                self._changed.notify_all()


class Turns:
    """Lets threads in turn by turn, numbered upwards, and at most `width` of them at once."""

    def __init__(self, width: int) -> None:
        self._room = threading.Semaphore(width)
        self._now = -math.inf
        self._changed = threading.Condition()

    def begin(self, number: float) -> None:
        """It is the turn of this number, and still that of those before it."""
        with self._changed:
            self._now = max(self._now, number)
            self._changed.notify_all()

    def open(self) -> None:
        """It is everybody's turn from now on."""
        self.begin(math.inf)

    @contextmanager
    def held(self, number: int) -> Iterator[None]:
        """Wait for the number's turn and for room."""
        with self._changed:
            self._changed.wait_for(lambda: number <= self._now)
        with self._room:
            yield
