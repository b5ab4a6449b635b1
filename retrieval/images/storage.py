"""The store of copied images, by the SHA-256 of their source bytes, under VAR_DIR/images (or its
bucket, see `core.storage`).

Names from data sets are never used as file names. Each content has one source file
(`<sha256>.source`), one thumbnail (`.thumb.jpg`) and, if browsers can't show the source, one
display copy (`.display.jpg`). The source is written last, so that its presence implies the others.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from core import storage
from retrieval.images.decoding import (
    DISPLAY_SIDE,
    display_bytes,
    open_image,
    opened,
    orientation_of,
    thumbnail_bytes,
    upright_size,
)

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class StoredImage:
    """Facts of a source file; width and height in pixels, upright."""

    sha256: str
    format: str
    width: int
    height: int
    size_bytes: int


def content_hash(data: bytes) -> str:
    """Return the SHA-256 of a source file's bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def image_store(data: bytes) -> StoredImage:
    """Decode, check and store an image with its thumbnail and, if needed, its display copy.

    Safe to repeat and to run in several processes at once. Raises ImageRefused for a file that is
    no image, which isn't stored.
    """
    sha256 = content_hash(data)
    most = settings.IMAGE_MAX_PIXELS
    with open_image(data, max_pixels=most, at_least=DISPLAY_SIDE) as image:
        if not is_stored(sha256):
            shown = display_bytes(image)
            if shown is not None:
                _write(_path(sha256, "display.jpg"), shown)
            _write(_path(sha256, "thumb.jpg"), thumbnail_bytes(image))
            _write(_path(sha256, "source"), data)
    return StoredImage(sha256, image.format, image.width, image.height, len(data))


def image_facts(data: bytes) -> StoredImage:
    """Return the facts that `image_store` returns, by the file's header; nothing is stored.

    Raises ImageRefused for a file that can't be an image. Whether one breaks off or is damaged is
    known once it is decoded.
    """
    image = opened(data, max_pixels=settings.IMAGE_MAX_PIXELS)
    width, height = upright_size(image.size, orientation_of(image))
    return StoredImage(content_hash(data), image.format or "", width, height, len(data))


def is_stored(sha256: str) -> bool:
    """Whether a content is stored, with its thumbnail and display copy."""
    return storage.exists(_path(sha256, "source"))


def source_read(sha256: str) -> bytes | None:
    """Return the unchanged bytes of the source file, or None if it isn't stored."""
    return _read(_path(sha256, "source"))


def display_read(sha256: str) -> bytes | None:
    """Return a JPEG that shows the content upright, or None if it isn't stored."""
    return _read(display_path(sha256))


def thumbnail_read(sha256: str) -> bytes | None:
    """Return the content's thumbnail, a JPEG, or None if it isn't stored."""
    return _read(thumbnail_path(sha256))


def display_path(sha256: str) -> Path:
    """Return the path of a JPEG that shows the content upright."""
    copy = _path(sha256, "display.jpg")
    return copy if storage.exists(copy) else _path(sha256, "source")


def thumbnail_path(sha256: str) -> Path:
    """Return the path of the content's thumbnail, a JPEG."""
    return _path(sha256, "thumb.jpg")


def image_remove(sha256: str) -> None:
    """Delete a content with its thumbnail and display copy; missing files are no error."""
    for path in stored_paths(sha256):
        storage.remove(path)


def stored_paths(sha256: str) -> tuple[Path, Path, Path]:
    """Return the paths of the source file, the thumbnail and the display copy, which not every
    content has.
    """
    return _path(sha256, "source"), _path(sha256, "thumb.jpg"), _path(sha256, "display.jpg")


def _path(sha256: str, kind: str) -> Path:
    if not _SHA256.fullmatch(sha256):
        raise ValueError(f"{sha256!r} is not a SHA-256.")
    folder = Path(settings.VAR_DIR) / "images" / sha256[:2] / sha256[2:4]
    return folder / f"{sha256}.{kind}"


def _read(path: Path) -> bytes | None:
    try:
        with storage.reading(path) as file:
            data: bytes = file.read()
    except FileNotFoundError:
        return None
    return data


def _write(path: Path, data: bytes) -> None:
    with storage.writing(path) as file:
        file.write(data)
