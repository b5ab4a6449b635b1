"""A picture's bytes, wherever it lies: in the store, or where it was before it was imported.

Safe to call from several threads. Once `roots_known` was called, no other function here needs the
database for an image that was imported before.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from django.conf import settings

from retrieval.corpus.models import Image, ImageRoot
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
from retrieval.images.root_files import (
    ImageChanged,
    ImageGone,
    RootFiles,
    RootUnavailable,
    root_files,
)
from retrieval.images.storage import (
    StoredImage,
    content_hash,
    display_path,
    source_read,
    thumbnail_path,
)
from retrieval.images.thumbnails import cached

__all__ = [
    "ImageChanged",
    "ImageGone",
    "ImageRef",
    "RootUnavailable",
    "any_far",
    "display_file",
    "image_file_facts",
    "public_bytes",
    "roots_known",
    "source_bytes",
    "thumbnail_file",
]

_GONE: Final = "The image's file is gone from the store. Import it again."
_T = TypeVar("_T")
_locations: dict[int, str] = {}


@dataclass(frozen=True, slots=True)
class ImageRef:
    """Where an image's bytes are: in the store under `sha256`, or at `file_name` below a root,
    with a `sha256` that is empty while unknown.
    """

    sha256: str
    root_id: int | None
    file_name: str

    @classmethod
    def of(cls, image: Image) -> ImageRef:
        return cls(image.sha256, image.root_id, image.file_name)


def roots_known() -> None:
    """Learn the locations of all roots, for threads that have no database."""
    global _locations
    _locations = dict(ImageRoot.objects.values_list("pk", "location"))


def any_far() -> bool:
    """Tell whether images lie in a place whose files take their time to come; see `roots_known`."""
    return any(not root_files(location).near for location in _locations.values())


def source_bytes(ref: ImageRef) -> bytes:
    """Return the source file's bytes, unchanged. They leave the application through
    `public_bytes` only: they may say where and by whom the picture was taken.

    Raises ImageGone, with a text for people, where the file isn't there, is too large
    (imaging.MAX_BYTES), or isn't the one whose SHA-256 is known (ImageChanged), and where its
    place doesn't answer (RootUnavailable).
    """
    if ref.root_id is None:
        data = source_read(ref.sha256)
        if data is None:
            raise ImageGone(_GONE)
        return data
    data = _files_at(ref.root_id).read(ref.file_name)
    if ref.sha256 and content_hash(data) != ref.sha256:
        raise ImageChanged("The image's file was changed since it was looked at.")
    return data


def image_file_facts(ref: ImageRef) -> StoredImage:
    """Read and decode an image's file as it is now, whatever its SHA-256 was, and tell what it is.

    Raises ImageGone as `display_file`.
    """
    data = source_bytes(replace(ref, sha256="") if ref.root_id is not None else ref)
    # The whole file is read and undone, and of a JPEG few pixels are made.
    return _from_pixels(
        data,
        1,
        lambda picture: StoredImage(
            content_hash(data), picture.format, picture.width, picture.height, len(data)
        ),
    )


def public_bytes(ref: ImageRef) -> bytes:
    """Return the source picture as it may be passed on; see `without_metadata`.

    Raises ImageGone as `source_bytes`, and for a file that is no picture.
    """
    return _public(source_bytes(ref))


def display_file(ref: ImageRef) -> BinaryIO:
    """Open a JPEG that shows the picture upright and holds no metadata, at most DISPLAY_SIDE pixels
    long where it isn't the source itself. Raises ImageGone as `public_bytes`.
    """
    if ref.root_id is None:
        return _stored(display_path(ref.sha256))
    files = _files_at(ref.root_id)

    def make() -> tuple[bytes, bool]:
        data = source_bytes(ref)
        shown = _from_pixels(data, DISPLAY_SIDE, display_bytes)
        # A source that serves as it is isn't copied from one folder into another.
        return (data, not files.near) if shown is None else (shown, True)

    return _cached(files, ref, "display", make)


def thumbnail_file(ref: ImageRef) -> BinaryIO:
    """Open the thumbnail, a JPEG without metadata. Raises ImageGone as `public_bytes`."""
    if ref.root_id is None:
        return _stored(thumbnail_path(ref.sha256))

    def make() -> tuple[bytes, bool]:
        return _from_pixels(source_bytes(ref), THUMBNAIL_SIDE, thumbnail_bytes), True

    return _cached(_files_at(ref.root_id), ref, "thumbnail", make)


def _from_pixels(data: bytes, at_least: int, use: Callable[[DecodedImage], _T]) -> _T:
    most = settings.IMAGE_MAX_PIXELS
    try:
        with open_image(data, max_pixels=most, at_least=at_least) as picture:
            return use(picture)
    except ImageRefused as error:
        raise ImageGone(str(error)) from error


def _public(data: bytes) -> bytes:
    try:
        return without_metadata(data, max_pixels=settings.IMAGE_MAX_PIXELS)
    except ImageRefused as error:
        raise ImageGone(str(error)) from error


def _files_at(root_id: int) -> RootFiles:
    if root_id not in _locations:
        roots_known()
    return root_files(_locations[root_id])


def _stored(path: Path) -> BinaryIO:
    try:
        return io.BytesIO(_public(path.read_bytes()))
    except FileNotFoundError as error:
        raise ImageGone(_GONE) from error


def _cached(
    files: RootFiles, ref: ImageRef, kind: str, make: Callable[[], tuple[bytes, bool]]
) -> BinaryIO:
    """Open what is derived of one content at one root, made once, and of another content anew."""
    derived = "\0".join((kind, files.location, ref.file_name, ref.sha256))
    data = cached(
        Path(settings.VAR_DIR) / "thumbnails",
        limit=settings.THUMBNAIL_CACHE_BYTES,
        key=content_hash(derived.encode()),
        make=make,
    )
    return io.BytesIO(_public(data))
