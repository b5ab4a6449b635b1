"""A cache of pictures that are made when they are first asked for, within a limit of bytes.

Several processes and threads may use one folder. It has 256 shards, each with an equal part of the
limit and a file that says how many bytes it holds: neither finding nor keeping a picture looks
through the cache. Only a shard that is full is listed, and loses what was used least recently.
Nothing here knows the database, or what a picture is.
"""

from __future__ import annotations

import fcntl
import io
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

SHARDS: Final = 256
#: A use is noted at most this often a file, in seconds.
NOTED_EVERY: Final = 3600.0
#: What a full shard is emptied to, so that it isn't listed for each picture.
FILLED: Final = 0.9

_PARTIAL: Final = ".writing"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Made:
    """The bytes of a picture that was made, and whether they are worth keeping."""

    data: bytes
    keep: bool = True


class ThumbnailCache:
    """Files by key in `folder`, together at most `limit` bytes. A key is of hexadecimal digits."""

    def __init__(self, folder: Path, *, limit: int) -> None:
        self._folder = folder
        self._limit = limit // SHARDS

    def open(self, key: str, make: Callable[[], Made]) -> BinaryIO:
        """Open what is kept under `key`, or else what `make` makes, which is kept then.

        Who asks for a key that is being made, in whichever process, waits for it. What is larger
        than a shard, or doesn't fit on the disk, is made each time. An opened file stays whole when
        it is dropped from the cache.
        """
        shard = self._folder / key[:2]
        path = shard / f"{key}.jpg"
        kept = _opened(path)
        if kept is not None:
            return kept
        # One of 16 locks a shard: files of their own for each key would have to be dropped, too.
        with self._turn(shard / f".making-{key[2]}"):
            kept = _opened(path)
            if kept is not None:
                return kept
            made = make()
            if made.keep and len(made.data) <= self._limit:
                try:
                    self._keep(path, made.data)
                except OSError as error:
                    log.warning("A picture cannot be kept in %s: %s", self._folder, error)
        return io.BytesIO(made.data)

    @contextmanager
    def _turn(self, lock: Path) -> Iterator[None]:
        """Wait for the lock; without it where the disk has no room for its file."""
        with ExitStack() as held:
            try:
                lock.parent.mkdir(parents=True, exist_ok=True)
                held.enter_context(_locked(lock))
            except OSError as error:
                log.warning("Nothing can be kept in %s: %s", self._folder, error)
            yield

    def _keep(self, path: Path, data: bytes) -> None:
        shard = path.parent
        with _locked(shard / ".size") as ledger:
            size = _read_size(ledger)
            if size is None or size + len(data) > self._limit:
                size = _make_room(shard, down_to=self._limit * FILLED - len(data))
            # Counted before it is there: whoever is killed here leaves a shard that is listed too
            # early, and then counted anew.
            _write_size(ledger, size + len(data))
            partial = shard / _PARTIAL
            partial.write_bytes(data)
            os.replace(partial, path)


def _opened(path: Path) -> BinaryIO | None:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    if time.time() - os.fstat(file.fileno()).st_mtime > NOTED_EVERY:
        # The time of its change is that of its last use.
        os.utime(file.fileno())
    return file


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Hold a file's lock; it ends with the process that holds it. Yields the open file."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def _read_size(ledger: int) -> int | None:
    text = os.pread(ledger, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _write_size(ledger: int, size: int) -> None:
    os.pwrite(ledger, str(size).encode().ljust(32), 0)


def _make_room(shard: Path, *, down_to: float) -> int:
    """Drop what was used least recently until at most `down_to` bytes are left; how many are."""
    found = []
    with os.scandir(shard) as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                about = entry.stat()
                found.append((about.st_mtime_ns, about.st_size, entry.path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= down_to:
            break
        Path(path).unlink(missing_ok=True)
        total -= size
    return total
