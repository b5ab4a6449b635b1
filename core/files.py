"""Atomic writing of files and directories, and safe reading of files named by others."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from core.errors import Refused

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_CLOSED = 0o077
_callers_umask = _CLOSED


def close_to_others() -> None:
    """Have all that this process and its children write be readable by their account alone, unless
    a file's writer opens it: no place that writes below VAR_DIR can forget. The settings call it,
    which every command, web server and worker reads before it writes anything.
    """
    global _callers_umask
    if (before := os.umask(_CLOSED)) != _CLOSED:
        _callers_umask = before


@contextmanager
def open_as_callers() -> Iterator[None]:
    """Write with the umask that the process began with: for commands that write for others, where
    their caller says. Holds for all threads of the process.
    """
    before = os.umask(_callers_umask)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def whole_file(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Write a file that appears whole or not at all, and replaces an existing one.

    With `durable` its bytes are on the disk before it has its name, so that no crash leaves half of
    it. An error within removes what was written. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=f".{path.name[:100]}.", delete=False
    ) as draft:
        try:
            yield draft  # type: ignore[misc]
            draft.flush()
            if durable:
                os.fsync(draft.fileno())
            os.replace(draft.name, path)
        except BaseException:
            Path(draft.name).unlink(missing_ok=True)
            raise
    if durable:
        sync_path(path.parent)


class TargetRefused(Refused):
    """The directory can't be written; the message says why and what to do."""


@contextmanager
def atomic_directory(
    target: Path, *, replace: bool = False, replaceable: Collection[str] | None = ()
) -> Iterator[Path]:
    """Give an empty directory beside `target` to be filled; on leaving, it becomes `target`.

    All files are on disk (fsync) before the name changes, so that a crash at any moment leaves the
    old state or the new one. An exception inside removes what was written, and what a killed
    process left is removed when the same `target` is written again. An existing `target` is
    refused, unless it is an empty directory or `replace` is set, and then too if it holds anything
    but the files named in `replaceable` (paths below it, with "/"); None: whatever it holds.

    TargetRefused: before anything is written.
    """
    target = target.absolute()
    _check(target, replace=replace, replaceable=replaceable)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial, lock = _partial_make(target)
    try:
        yield partial
        for path in partial.rglob("*"):
            sync_path(path)
        sync_path(partial)
        # Again, because writing took its time.
        _check(target, replace=replace, replaceable=replaceable)
        if target.exists() and any(target.iterdir()):
            _exchange(partial, target)
        else:
            partial.rename(target)
        sync_path(target.parent)
    finally:
        # After an exchange this is what `target` held before.
        shutil.rmtree(partial, ignore_errors=True)
        os.close(lock)


def _partial_make(target: Path) -> tuple[Path, int]:
    """Make the directory beside `target`, and remove those that killed processes left.

    Who writes one has it open and locked: the lock ends with its process.
    """
    # mkdir, not mkdtemp: the permissions must follow the umask.
    partial = target.parent / f".{target.name}.partial-{uuid.uuid4().hex}"
    beside = os.open(target.parent, os.O_RDONLY)
    try:
        # So that nobody takes one for left between its making and its locking.
        if _lock(beside, wait=True):
            _remove_left(target)
        partial.mkdir()
        lock = os.open(partial, os.O_RDONLY)
        _lock(lock, wait=False)
    finally:
        os.close(beside)
    return partial, lock


def _remove_left(target: Path) -> None:
    name = re.compile(re.escape(f".{target.name}.partial-") + "[0-9a-f]{32}")
    for path in list(target.parent.iterdir()):
        if not name.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
            continue
        handle = os.open(path, os.O_RDONLY)
        try:
            if _lock(handle, wait=False):
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(handle)


def _lock(handle: int, *, wait: bool) -> bool:
    """Lock an open directory; False if it is locked, or the file system has no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _check(target: Path, *, replace: bool, replaceable: Collection[str] | None) -> None:
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise TargetRefused(f"{target} exists and is not a directory; choose another name.")
    if not replace and any(target.iterdir()):
        raise TargetRefused(f"{target} exists and is not empty; choose another directory.")
    foreign = [] if replaceable is None else _foreign(target, replaceable)
    if foreign:
        raise TargetRefused(
            f"{target} holds {foreign[0]!r}, which is not replaced; choose another directory."
        )


def _foreign(target: Path, replaceable: Collection[str]) -> list[str]:
    """What a directory holds besides the replaceable files and the folders that lead to them."""
    folders = {parent.as_posix() for name in replaceable for parent in PurePosixPath(name).parents}
    found = {
        path.relative_to(target).as_posix(): path.is_dir() and not path.is_symlink()
        for path in target.rglob("*")
    }
    return sorted(
        name for name, folder in found.items() if name not in (folders if folder else replaceable)
    )


def sync_path(path: Path) -> None:
    """Write a file's bytes, or the names in a folder, to the disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _exchange(first: Path, second: Path) -> None:
    """Swap two directories in one step where the system can, else with a short moment without
    `second`."""
    libc = ctypes.CDLL(None, use_errno=True)
    swap = getattr(libc, "renameat2", None)
    if swap is not None:
        paths = os.fsencode(first), os.fsencode(second)
        if swap(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(code, os.strerror(code), str(second))
    aside = first.with_name(first.name + "-old")
    second.rename(aside)
    first.rename(second)
    aside.rename(first)


class NotRegular(OSError):
    """The path leads to something other than a regular file."""


def open_regular(path: Path, *, flags: int = 0) -> BinaryIO:
    """Open a regular file to be read as bytes; `flags` are those of os.open besides.

    Raises OSError as `open`, NotRegular for a pipe, socket or device.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | flags)
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise NotRegular(errno.EINVAL, "Not a regular file", str(path))
        # Which refuses a folder.
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def is_below(name: str) -> bool:
    """Whether a relative path stays below the folder that it starts at; links aren't followed."""
    # Fast for nearly all names.
    if name and not name.startswith(("/", ".")) and ".." not in name and "\0" not in name:
        return True
    path = PurePosixPath(name)
    climbs = path.is_absolute() or ".." in path.parts or not path.parts
    return not climbs and "\0" not in name
