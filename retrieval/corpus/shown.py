"""The files that signed addresses show: images and thumbnails without metadata, under
VAR_DIR/thumbnails.

Only images of the corpus have them: a withdrawal deletes an image's files in its transaction, and
none is written afterwards. So a signature and a file are all that showing an image needs. Machines
that share a bucket couldn't delete each other's files, and keep none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import connection, transaction

from core.file_cache import path_of, store
from core.locks import lock_key, transaction_lock
from core.storage import is_shared
from retrieval.corpus.models import Image, ImageWithdrawal


def cache_folder() -> Path:
    """The folder of what is made to show images, at most THUMBNAIL_CACHE_BYTES."""
    return Path(settings.VAR_DIR) / "thumbnails"


def shown_name(pk: int, version: str) -> str:
    """The name below `cache_folder` of an image's or thumbnail's file, which was used now; empty if
    there is none. `version` is as in its address.
    """
    path = path_of(cache_folder(), _key(pk, version))
    try:
        os.utime(path)
    except FileNotFoundError:
        return ""
    # Of before STORAGE_URL was set.
    return "" if is_shared() else f"{path.parent.name}/{path.name}"


def shown_file_write(pk: int, version: str, data: bytes) -> None:
    """Keep the bytes of an image or thumbnail, if the image is in the corpus."""
    if is_shared():
        return
    with transaction.atomic():
        _lock(pk)
        with connection.cursor() as cursor:
            cursor.execute(_IN_CORPUS, [pk])
            if not cursor.rowcount:
                return
        limit = settings.THUMBNAIL_CACHE_BYTES
        store(cache_folder(), limit=limit, key=_key(pk, version), data=data)


# Django takes longer to write the statement than all else takes.
_IN_CORPUS: Final = f"""
SELECT FROM {Image._meta.db_table} image
 WHERE id = %s AND NOT EXISTS (SELECT FROM {ImageWithdrawal._meta.db_table} withdrawal
                                WHERE withdrawal.image_id = image.id AND restored_at IS NULL)
"""


def shown_files_remove(pk: int) -> None:
    """Delete an image's files, of all versions, in the transaction that takes the image out of the
    corpus: nobody writes one until it ends.
    """
    _lock(pk)
    every = path_of(cache_folder(), _key(pk, "*"))
    for path in every.parent.glob(every.name):
        path.unlink(missing_ok=True)


def _lock(pk: int) -> None:
    transaction_lock(lock_key("shown", pk % 2**48))


def _key(pk: int, version: str) -> str:
    return f"{pk % 256:02x}-{pk}-{version}.jpg"
