"""A table that is sent again alone, in place of the one that an upload had; the images are kept.

It lies in the upload's folder `table`, and comes among its files when these are unpacked: on every
machine, also where a ZIP brings the earlier table again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from core import storage
from core.errors import Conflict, Invalid
from core.outages import free_bytes
from retrieval.importing import sheets
from retrieval.importing.records import ImportRefused
from retrieval.uploads.pieces import renew

SUFFIXES: Final = (*sheets.SUFFIXES, ".json")


def table_store(*, folder: Path, table: UploadedFile[Any]) -> None:
    """Store a table for an upload, in place of one that was sent before.

    Raises Invalid for a file that is no table, Conflict where the disk has no room.
    """
    name = table.name or ""
    if name.startswith(".") or Path(name).suffix.lower() not in SUFFIXES:
        raise Invalid({"table": [f"“{name}” is no table; tables end in {', '.join(SUFFIXES)}."]})
    if (table.size or 0) > free_bytes() - settings.DISK_MIN_FREE_BYTES:
        raise Conflict("The server's disk has no room for this file.")
    renew(folder)
    target = folder / "table" / name
    with storage.writing(target) as file:
        storage.copied(table, file)
    for earlier in list(storage.names_below(folder / "table")):
        if earlier != target:
            storage.remove(earlier)


def table_place(folder: Path, files: Path, read_from: Callable[[Path], Path]) -> None:
    """Put the table that was sent alone, if one was, in place of that which `read_from` finds among
    an upload's files; beside the images where there is none, and instead of all if it can't choose.
    """
    for table in storage.names_below(folder / "table"):
        try:
            found = read_from(files)
            place, earlier = (found, []) if found.is_dir() else (found.parent, [found])
        except ImportRefused:
            tables = [path for path in files.rglob("[!.]*") if path.suffix.lower() in SUFFIXES]
            folders = [path.parent for path in tables]
            place = min(folders, key=lambda path: len(path.parts), default=files)
            earlier = [path for path in tables if path.parent == place]
        for path in earlier:
            path.unlink()
        with storage.reading(table) as sent, (place / table.name).open("wb") as file:
            shutil.copyfileobj(sent, file)
