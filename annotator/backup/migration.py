"""Copying what the database names, and matrices, from one storage of files to another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from annotator.backup.contents import FOLDERS, named_files
from core.storage import Disk, copied, name_of

if TYPE_CHECKING:
    from core.bucket import Bucket

AT_ONCE: Final = 16
_PART: Final = 1000
_MATRICES: Final = "matrices"
#: Of one machine alone.
_NOT_SHARED: Final = ("lock", "building.json")


@dataclass(slots=True)
class Migration:
    """What became of the files."""

    copied: int = 0
    same: int = 0
    """Those that were there already."""
    missing: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    """Those whose SHA-256 isn't the one in the database, or that differ after they were copied."""


class _Damaged(Exception):
    pass


def migrate(
    source: Disk | Bucket, target: Disk | Bucket, report: Callable[[int], None] = lambda files: None
) -> Migration:
    """Copy each file that isn't the same in the target, and read it again there; damaged ones
    aren't copied. Done again, it goes on. Raises StorageAway, OSError.
    """
    found = Migration()
    files = _files(source)

    def carry(one: tuple[str, str, bool]) -> tuple[str, str]:
        return one[0], _carry(source, target, *one)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        while part := list(islice(files, _PART)):
            for name, outcome in pool.map(carry, part):
                if outcome in ("missing", "damaged"):
                    getattr(found, outcome).append(name)
                elif outcome:
                    setattr(found, outcome, getattr(found, outcome) + 1)
            report(found.copied + found.same)
    return found


def _files(source: Disk | Bucket) -> Iterator[tuple[str, str, bool]]:
    for one in named_files(images=True):
        name = name_of(one.path)
        if name.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
            yield name, one.sha256, one.needed
    for name in _matrices(source.names(_MATRICES)):
        yield name, "", True


def _matrices(names: Iterable[str]) -> Iterator[str]:
    """Manifests last, as they are written."""
    for name in sorted(names, key=lambda name: (name.endswith(".json"), name)):
        own = name.rpartition("/")[2]
        if own not in _NOT_SHARED and not own.startswith("."):
            yield name


def _carry(
    source: Disk | Bucket, target: Disk | Bucket, name: str, sha256: str, needed: bool
) -> str:
    """Copy a file; "same", "copied", "missing", "damaged", or "" where there need be none."""
    expected = sha256 or _sha256(source, name)
    if not expected:
        return "missing" if needed else ""
    if _sha256(target, name) == expected:
        return "same"
    try:
        with source.reading(name) as file, target.writing(name) as copy:
            if copied(file, copy) != expected:
                raise _Damaged
    except _Damaged:
        return "damaged"
    except FileNotFoundError:
        return "missing"
    return "copied" if _sha256(target, name) == expected else "damaged"


def _sha256(storage: Disk | Bucket, name: str) -> str:
    """Of a file as it is stored; empty where it isn't."""
    try:
        with storage.reading(name) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    except FileNotFoundError:
        return ""
