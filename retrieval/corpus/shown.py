"""The files that signed addresses show: images and thumbnails without metadata, under
VAR_DIR/thumbnails.

Only images of the corpus have them: a withdrawal deletes an image's files in its transaction, and
none is written afterwards. So a signature and a file are all that showing an image needs. Machines
that share a bucket couldn't delete each other's files, and keep none.
"""

from __future__ import annotations

import os
from pathlib import Path

from django.conf import settings

from core.file_cache import path_of
from core.locks import lock_key, transaction_lock
from core.storage import is_shared


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


def shown_files_remove(pk: int) -> None:
    """Delete an image's files, of all versions, in the transaction that takes the image out of the
    corpus: nobody writes one until it ends.
    """
    shown_files_lock(pk)
    every = path_of(cache_folder(), shown_key(pk, "*"))
    for path in every.parent.glob(every.name):
        path.unlink(missing_ok=True)


def shown_files_lock(pk: int) -> None:
    """Until the transaction ends, nobody else writes or deletes files of the image."""
    transaction_lock(lock_key("shown", pk % 2**48))


def shown_key(pk: int, version: str) -> str:
    """The file's key in `core.file_cache`."""
    return f"{pk % 256:02x}-{pk}-{version}.jpg"
