"""A cache of thumbnails and display copies on the disk (diskcache)."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Final

from diskcache import FanoutCache, Timeout

_SHARDS: Final = 8
_FAILURES: Final = (OSError, sqlite3.Error, Timeout)

log = logging.getLogger(__name__)


def cached(folder: Path, *, limit: int, key: str, make: Callable[[], tuple[bytes, bool]]) -> bytes:
    """Return the bytes in `folder` under `key`, or call `make`, which returns an image's bytes and
    whether to cache them.

    Several processes may use one folder. It holds about `limit` bytes; the least recently used are
    deleted first. Images larger than an eighth of that, and all while the disk is full, are not
    cached.
    """
    try:
        cache = _opened(folder, limit)
        found: bytes | None = cache.get(key)
        if found is not None:
            return found
    except _FAILURES as error:
        log.warning("The cache %s cannot be read: %s", folder, error)
        return make()[0]
    data, keep = make()
    if keep and len(data) <= limit // _SHARDS:
        try:
            cache.set(key, data)
        except _FAILURES as error:
            log.warning("An image cannot be stored in %s: %s", folder, error)
    return data


def forget(folder: Path, *, limit: int, key: str) -> None:
    """Delete the bytes in `folder` under `key`, if any. Raises OSError, sqlite3.Error, Timeout."""
    _opened(folder, limit).delete(key)


@lru_cache(maxsize=4)
def _opened(folder: Path, limit: int) -> FanoutCache:
    # Values of bytes and keys of text are stored as they are, never pickled.
    return FanoutCache(
        str(folder),
        shards=_SHARDS,
        timeout=1,
        size_limit=limit,
        eviction_policy="least-recently-used",
    )
