"""Copying what the database names from one storage of files to another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Final

from annotator.backup.contents import folders, named_files
from core.storage import Disk, copied, name_of

if TYPE_CHECKING:
    from core.bucket import Bucket

AT_ONCE: Final = 16
_PART: Final = 1000


def migrate(source: Disk | Bucket, target: Disk | Bucket) -> Iterator[tuple[str, str]]:
    """Copy files, and read them again where they were copied to; yields the name of each with what
    became of it: "copied", "same" where it was there, "missing", or "damaged" where its SHA-256
    isn't the one in the database, so that it isn't copied, or differs after it was.

    Done again, it goes on. Raises StorageAway, OSError.
    """

    def carry(name: str, sha256: str, needed: bool) -> tuple[str, str]:
        expected = sha256 or _sha256(source, name)
        if not expected:
            return name, "missing" if needed else ""
        if _sha256(target, name) == expected:
            return name, "same"
        try:
            with source.reading(name) as file, target.writing(name) as copy:
                if copied(file, copy) != expected:
                    raise ValueError
        except FileNotFoundError:
            return name, "missing"
        except ValueError:
            return name, "damaged"
        return name, "copied" if _sha256(target, name) == expected else "damaged"

    files = _files()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while part := list(islice(files, _PART)):
            outcomes = pool.map(lambda one: carry(*one), part)
            yield from ((name, outcome) for name, outcome in outcomes if outcome)


def _files() -> Iterator[tuple[str, str, bool]]:
    """Names with the SHA-256, if the database has it, and whether they are missed."""
    for path, sha256, needed in named_files(images=True):
        if name_of(path).partition("/")[0] in folders():
            yield name_of(path), sha256, needed


def _sha256(storage: Disk | Bucket, name: str) -> str:
    """Of a file as it is stored; empty where it isn't."""
    try:
        with storage.reading(name) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""
