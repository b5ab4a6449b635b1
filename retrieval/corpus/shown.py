"""The files that signed addresses show: images and thumbnails without metadata, under
VAR_DIR/thumbnails.

Only images of the corpus have them: a withdrawal deletes an image's files in its transaction, and
none is written afterwards. So a signature and a file are all that showing an image needs. Machines
that share a bucket couldn't delete each other's files, and keep none.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from django.conf import settings

from core.file_cache import path_of
from core.locks import lock_key, transaction_lock
from core.sql import fetch_all
from core.storage import is_shared

_FOLDERS: Final = 256
_LOCK_ALL: Final = "SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) key"


def cache_folder() -> Path:
    """The folder of what is made to show images, at most THUMBNAIL_CACHE_BYTES."""
    return Path(settings.VAR_DIR) / "thumbnails"


def shown_name(pk: int, version: str) -> str:
    """The name below `cache_folder` of an image's or thumbnail's file, which was used now; empty if
    there is none. `version` is as in its address.
    """
    path = path_of(cache_folder(), shown_key(pk, version))
    try:
        os.utime(path)
    except FileNotFoundError:
        return ""
    # Of before STORAGE_URL was set.
    return "" if is_shared() else f"{path.parent.name}/{path.name}"


def shown_files_remove(pks: Collection[int]) -> None:
    """Delete images' files, of all versions, in the transaction that takes the images out of the
    corpus: nobody writes one until it ends.
    """
    folders = sorted({pk % _FOLDERS for pk in pks})
    fetch_all(_LOCK_ALL, [[*map(_lock, folders)]])
    gone = {tuple(shown_key(pk, "").split("-")[:2]) for pk in pks}
    for folder in folders:
        with suppress(FileNotFoundError):
            for path in path_of(cache_folder(), f"{folder:02x}").parent.iterdir():
                if tuple(path.name.split("-")[:2]) in gone:
                    path.unlink(missing_ok=True)


def shown_files_lock(pk: int) -> None:
    """Until the transaction ends, nobody else writes or deletes files of the image, or of others in
    the same folder: a lock for each of thousands of images would fill PostgreSQL's table of locks.
    """
    transaction_lock(_lock(pk % _FOLDERS))


def shown_key(pk: int, version: str) -> str:
    """The file's key in `core.file_cache`."""
    return f"{pk % _FOLDERS:02x}-{pk}-{version}.jpg"


def _lock(folder: int) -> int:
    return lock_key("shown", folder)
