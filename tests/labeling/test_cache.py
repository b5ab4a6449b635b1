"""What is remembered of the figures: the latest, up to a limit."""

import pytest

from core.cache import LruCache

pytestmark = pytest.mark.pure


def test_memory_keeps_what_was_asked_for_last():
    memory: LruCache[str, int] = LruCache(limit=2)
    memory.set_many({"a": 1, "b": 2})
    assert memory.get_many(["a", "c"]) == {"a": 1}
    memory.set_many({"c": 3})
    assert memory.get_many("abc") == {"a": 1, "c": 3}
    memory.set_many({"a": 4, "d": 5})
    assert memory.get_many("abcd") == {"a": 4, "d": 5}
    assert len(memory) == 2
