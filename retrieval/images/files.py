"""The files of images, in the store or at a root: source, display copy and thumbnail.

Safe to call from several threads. After `roots_load`, no other function here needs the database
for images that were imported before.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import BinaryIO, Final, TypeVar

from django.conf import settings

from core.file_cache import cached, forget
from core.storage import is_shared
from retrieval.corpus.models import Image, ImageRoot
from retrieval.corpus.shown import cache_folder
from retrieval.images.decoding import (
    DISPLAY_SIDE,
    THUMBNAIL_SIDE,
    DecodedImage,
    ImageRefused,
    display_bytes,
    open_image,
    thumbnail_bytes,
)
from retrieval.images.metadata import without_metadata
from retrieval.images.roots import (
    ImageChanged,
    ImageGone,
    RootFiles,
    RootUnavailable,
    root_files,
)
from retrieval.images.storage import (
    StoredImage,
    content_hash,
    display_read,
    image_remove,
    source_read,
    thumbnail_read,
)

__all__ = [
    "ImageChanged",
    "ImageGone",
    "ImageRef",
    "RootUnavailable",
    "any_far",
    "copies_remove",
    "display_file",
    "image_file_facts",
    "public_bytes",
    "roots_load",
    "source_bytes",
    "thumbnail_file",
]

_GONE: Final = "The image's file is gone from the store. Import it again."
_T = TypeVar("_T")
_locations: dict[int, str] = {}


@dataclass(frozen=True, slots=True)
class ImageRef:
    """Where an image's bytes are: in the store under `sha256`, or at `file_name` below a root; then
    `sha256` is empty while it is unknown.
    """

    sha256: str
    root_id: int | None
    file_name: str

    @classmethod
    def of(cls, image: Image) -> ImageRef:
        """Return where the image's bytes are."""
        return cls(image.sha256, image.root_id, image.file_name)


def roots_load() -> None:
    """Load the locations of all roots, for threads without a database connection."""
    global _locations
    _locations = dict(ImageRoot.objects.values_list("pk", "location"))


def any_far() -> bool:
    """Whether images are remote, so that reading takes time; call `roots_load` before."""
    return is_shared() or any(not root_files(location).near for location in _locations.values())


def source_bytes(ref: ImageRef) -> bytes:
    """Return the source file's bytes, unchanged.

    Only `public_bytes` may leave the application: metadata may say where and by whom the image was
    taken. Raises ImageGone if the file is missing or larger than MAX_BYTES, ImageChanged if its
    SHA-256 is not the known one, RootUnavailable if its root doesn't answer.
    """
    if ref.root_id is None:
        return _stored(source_read(ref.sha256))
    data = _files_at(ref.root_id).read(ref.file_name)
    if ref.sha256 and content_hash(data) != ref.sha256:
        raise ImageChanged("The image's file has changed since it was checked.")
    return data


def image_file_facts(ref: ImageRef) -> StoredImage:
    """Read and decode an image's present file, even if its SHA-256 has changed; return its facts.

    Raises ImageGone as `display_file`.
    """
    data = source_bytes(replace(ref, sha256="") if ref.root_id is not None else ref)
    # at_least=1: the whole file is decoded, and a JPEG reduced as far as possible.
    return _from_pixels(
        data,
        1,
        lambda image: StoredImage(
            content_hash(data), image.format, image.width, image.height, len(data)
        ),
    )


def public_bytes(ref: ImageRef) -> bytes:
    """Return the source image without metadata; see `without_metadata`.

    Raises ImageGone as `source_bytes`, and for a file that is no image.
    """
    return _public(source_bytes(ref))


def display_file(ref: ImageRef) -> BinaryIO:
    """Open an upright JPEG without metadata: the source itself, or a copy of at most DISPLAY_SIDE
    pixels a side. Raises ImageGone as `public_bytes`.
    """
    if ref.root_id is None:
        return io.BytesIO(_public(_stored(display_read(ref.sha256))))
    files = _files_at(ref.root_id)

    def make() -> tuple[bytes, bool]:
        data = source_bytes(ref)
        shown = _from_pixels(data, DISPLAY_SIDE, display_bytes)
        # A source in a folder that can be shown itself is not cached.
        return (data, not files.near) if shown is None else (shown, True)

    return _cached(files, ref, "display", make)


def thumbnail_file(ref: ImageRef) -> BinaryIO:
    """Open the thumbnail, a JPEG without metadata. Raises ImageGone as `public_bytes`."""
    if ref.root_id is None:
        return io.BytesIO(_public(_stored(thumbnail_read(ref.sha256))))

    def make() -> tuple[bytes, bool]:
        return _from_pixels(source_bytes(ref), THUMBNAIL_SIDE, thumbnail_bytes), True

    return _cached(_files_at(ref.root_id), ref, "thumbnail", make)


def copies_remove(ref: ImageRef) -> None:
    """Delete what is stored here of an image: its copied file, or, if the file stays at its root
    and is not ours to delete, the cached copies.
    """
    if ref.root_id is None:
        image_remove(ref.sha256)
        return
    for kind in ("display", "thumbnail"):
        key = _cache_key(_files_at(ref.root_id), ref, kind)
        forget(cache_folder(), key=key)


def _from_pixels(data: bytes, at_least: int, use: Callable[[DecodedImage], _T]) -> _T:
    most = settings.IMAGE_MAX_PIXELS
    try:
        with open_image(data, max_pixels=most, at_least=at_least) as image:
            return use(image)
    except ImageRefused as error:
        raise ImageGone(str(error)) from error


def _public(data: bytes) -> bytes:
    try:
        return without_metadata(data, max_pixels=settings.IMAGE_MAX_PIXELS)
    except ImageRefused as error:
        raise ImageGone(str(error)) from error


def _files_at(root_id: int) -> RootFiles:
    if root_id not in _locations:
        roots_load()
    return root_files(_locations[root_id])


def _stored(data: bytes | None) -> bytes:
    if data is None:
        raise ImageGone(_GONE)
    return data


def _cached(
    files: RootFiles, ref: ImageRef, kind: str, make: Callable[[], tuple[bytes, bool]]
) -> BinaryIO:
    """Open the cached thumbnail or display copy of an image at a root, made on first use."""
    key = _cache_key(files, ref, kind)
    data = cached(cache_folder(), limit=settings.THUMBNAIL_CACHE_BYTES, key=key, make=make)
    return io.BytesIO(_public(data))


def _cache_key(files: RootFiles, ref: ImageRef, kind: str) -> str:
    derived = "\0".join((kind, files.location, ref.file_name, ref.sha256))
    return content_hash(derived.encode())
