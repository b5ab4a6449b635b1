"""A matrix that one machine packed, for the others that share its database and bucket.

The bucket holds what the folder of a matrix does: its files, and last the manifest that names them.
Files of two machines may bear the same name; those that don't fit a manifest have another checksum
than it says, so that they are neither fetched nor used.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path

from core import storage
from core.files import whole_file
from core.locks import lock_key, try_session_lock
from retrieval.ranking.files import MANIFEST, Manifest

logger = logging.getLogger(__name__)


def publish(folder: Path) -> None:
    """Store the matrix of a folder in the bucket, unless a later one is there or is being stored.
    Raises StorageAway, OSError.
    """
    if not storage.is_shared():
        return
    # The name of the folder, below VAR_DIR, is the same on all machines.
    key = lock_key("matrix", zlib.crc32(storage.name_of(folder).encode()))
    with try_session_lock(key) as held:
        own, there = Manifest.load(folder), _shared(folder)
        if not held or own is None or (there and there.watermark >= own.watermark):
            return
        known = {(one.name, one.checksum) for one in there.files} if there else set()
        for file in own.files:
            if (file.name, file.checksum) not in known:
                storage.publish(folder / file.name, folder / file.name)
        storage.publish(folder / MANIFEST, folder / MANIFEST)
        named = {folder / MANIFEST, *(folder / file.name for file in own.files)}
        for left in set(storage.names_below(folder)) - named:
            # That of a part of this matrix lies in a folder of its own.
            if left.parent == folder:
                storage.remove(left)


def fetch(folder: Path) -> None:
    """Bring the bucket's matrix into the folder, if it is later than the one there.

    The manifest has the times of the files where they were packed: whoever packs compares their
    checksums before they are used. What is damaged or doesn't fit on the disk stays where it is.
    Raises StorageAway, OSError.
    """
    if not storage.is_shared():
        return
    own, there = Manifest.load(folder), _shared(folder)
    if there is None or (own and own.watermark >= there.watermark):
        return
    missing = [file for file in there.files if not file.whole(folder)]
    if sum(file.size for file in missing) > shutil.disk_usage(folder).free:
        return
    with suppress(FileNotFoundError):
        for file in missing:
            path = folder / file.name
            with storage.reading(path) as source, whole_file(path) as target:
                storage.copied(source, target)
    if all(file.whole(folder) for file in missing):
        there.save(folder)
    else:
        logger.warning("The matrix in the bucket is damaged or was just replaced: %s", folder)
        # So that all of it is stored again.
        storage.remove(folder / MANIFEST)


def _shared(folder: Path) -> Manifest | None:
    """The manifest in the bucket; None where there is none that this version writes."""
    with tempfile.TemporaryDirectory() as here:
        try:
            with (
                storage.reading(folder / MANIFEST) as source,
                (Path(here) / MANIFEST).open("wb") as target,
            ):
                storage.copied(source, target)
        except FileNotFoundError:
            return None
        return Manifest.load(Path(here))
