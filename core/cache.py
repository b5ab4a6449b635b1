"""A bounded cache in the memory of one process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """The `limit` most recently used values by key, many at a time; safe for threads.

    Entries don't expire, so a key must name everything that its value depends on.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get_many(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """The cached values of these keys; a key that isn't cached is left out."""
        found = {}
        with self._lock:
            for key in keys:
                if key in self._values:
                    self._values.move_to_end(key)
                    found[key] = self._values[key]
        return found

    def set_many(self, values: Mapping[Key, Value]) -> None:
        """Cache these values, and evict the least recently used ones above the limit."""
        with self._lock:
            for key, value in values.items():
                self._values[key] = value
                self._values.move_to_end(key)
            while len(self._values) > self._limit:
                self._values.popitem(last=False)
