"""A process's memory of what was computed from a state that its key names in full."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """The last `limit` values that were put in or asked for, by key; several threads may use it.

    A key must tell everything that its value depends on, so that a value never grows old.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def known(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """The values of those keys that are remembered."""
        found = {}
        with self._lock:
            for key in keys:
                if key in self._values:
                    self._values.move_to_end(key)
                    found[key] = self._values[key]
        return found

    def keep(self, values: Mapping[Key, Value]) -> None:
        """Remember these values too, and forget the ones asked for longest ago."""
        with self._lock:
            for key, value in values.items():
                self._values[key] = value
                self._values.move_to_end(key)
            while len(self._values) > self._limit:
                self._values.popitem(last=False)
