"""ZIP archives with equal bytes for equal files."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any, Final

#: What is compressed already is stored as it is.
_STORED: Final = frozenset(
    {".parquet", ".jpg", ".jpeg", ".png", ".webp", ".gif", ".avif", ".gz", ".zip"}
)
#: The earliest date that an archive can hold, so that no clock gets into the bytes.
_NO_DATE: Final = (1980, 1, 1, 0, 0, 0)
_PERMISSIONS: Final = 0o100644
_CHUNK: Final = 1 << 20


def write_archive(
    path: Path,
    directory: Path,
    names: Iterable[str],
    *,
    root: str,
    written: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Write the named files of a directory into one archive, in a folder `root`; name, size and
    SHA-256 of the archive.

    Names are sorted, times and permissions fixed. Streams: memory doesn't grow with the files.
    `written` is called after each file.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(names):
            source = directory / name
            entry = zipfile.ZipInfo(f"{root}/{name}", date_time=_NO_DATE)
            entry.create_system = 3
            entry.external_attr = _PERMISSIONS << 16
            stored = PurePosixPath(name).suffix.lower() in _STORED
            entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            # Known beforehand, so that small files need no ZIP64 record and large ones have it.
            entry.file_size = source.stat().st_size
            with source.open("rb") as file, archive.open(entry, "w") as member:
                shutil.copyfileobj(file, member, _CHUNK)
            written()
    return {"name": path.name, "size": path.stat().st_size, "sha256": file_sha256(path)}


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
