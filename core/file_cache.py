"""A cache of images in a folder: plain files, the least recently used deleted first."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from core.files import whole_file

#: After writing this part of the limit, a process deletes the excess.
_SHARE: Final = 1 / 64
#: The largest cached image, as a part of the limit.
_LARGEST: Final = 1 / 8
_written: Counter[Path] = Counter()

log = logging.getLogger(__name__)


def cached(folder: Path, *, limit: int, key: str, make: Callable[[], tuple[bytes, bool]]) -> bytes:
    """Return the bytes in `folder` under `key`, or call `make`, which returns an image's bytes and
    whether to cache them as `store` does.
    """
    path = path_of(folder, key)
    with suppress(OSError):
        data = path.read_bytes()
        os.utime(path)
        return data
    data, keep = make()
    if keep:
        store(folder, limit=limit, key=key, data=data)
    return data


def store(folder: Path, *, limit: int, key: str, data: bytes) -> None:
    """Write an image's bytes to `folder` under `key`.

    Keys begin with two hexadecimal digits, in which they should differ. Several processes may use
    one folder. It holds about `limit` bytes; the least recently used are deleted first. Images
    larger than an eighth of that, and all while the disk is full, are not written.
    """
    if len(data) > limit * _LARGEST:
        return
    try:
        with whole_file(path_of(folder, key), durable=False) as file:
            file.write(data)
        _written[folder] += len(data)
        if _written[folder] > limit * _SHARE:
            del _written[folder]
            _trim(folder, limit)
    except OSError as error:
        log.warning("An image cannot be stored in %s: %s", folder, error)


def forget(folder: Path, *, key: str) -> None:
    """Delete the bytes in `folder` under `key`, if any. Raises OSError."""
    path_of(folder, key).unlink(missing_ok=True)


def path_of(folder: Path, key: str) -> Path:
    """The file in `folder` that holds the bytes under `key`."""
    return folder / key[:2] / key


def _trim(folder: Path, limit: int) -> None:
    """Delete the least recently used images until there is room for what processes may write before
    the next trimming."""
    files = []
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # another process deletes too
            state = path.stat()
            if not path.is_dir():
                files.append((state.st_mtime_ns, state.st_size, path))
    excess = sum(size for _, size, _ in files) - limit * (1 - 4 * _SHARE)
    for _, size, path in sorted(files):
        if excess <= 0:
            return
        path.unlink(missing_ok=True)
        excess -= size
