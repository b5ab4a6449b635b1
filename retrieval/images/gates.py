"""What threads wait at until there is room for them."""

from __future__ import annotations

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
