"""Decoding of image files of several formats to upright RGB.

Threads that decode share a budget of pixels, so that the memory of a process doesn't grow with
their number.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Final

import numpy as np
from PIL import Image, UnidentifiedImageError

from core.optional import NotInstalled, optional

_HEIF: tuple[str, ...] = ()
_NO_HEIF = ""
try:
    with optional("heic"):
        from pillow_heif import register_heif_opener
except NotInstalled as error:
    _NO_HEIF = f" {error}"
else:
    register_heif_opener(thumbnails=False)
    _HEIF = ("HEIF",)

# Formats whose readers run no other program and whose headers state the decoded size. The reader of
# JPEG also reads MPO; the extra `heic` reads HEIF, which includes HEIC.
FORMATS: Final = (
    "JPEG", "PNG", "GIF", "WEBP", "AVIF", "TIFF", "BMP", "JPEG2000", "PPM", *_HEIF,
)  # fmt: skip

THUMBNAIL_SIDE: Final = 384
DISPLAY_SIDE: Final = 2048
MAX_BYTES: Final = 512 * 1024 * 1024

DECODED_PIXELS: Final = 64_000_000
"""Decoded pixels of all threads of a process together (256 MB); a larger image is decoded alone."""
SMALL_PIXELS: Final = 1_000_000
"""Images of at most this many pixels are not counted in the budget."""
WEIGHTS: Final = {"WEBP": 3, "AVIF": 2, "HEIF": 2, "JPEG2000": 4}
"""How many times a pixel counts in formats whose decoder holds more than Pillow's 4 bytes for it
(tests/retrieval/test_decoding_memory.py)."""
TILE_PIXELS: Final = 250_000

_SIGNATURES: Final = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG": "PNG",
    b"GIF8": "GIF",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
    b"BM": "BMP",
}
_READ: Final = {*_SIGNATURES.values(), *(["HEIC"] if _HEIF else [])}
_TRUNCATED: Final = "The image is truncated: its end is missing."
_EXIF_ORIENTATION: Final = 0x0112
_UPRIGHT: Final = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# Orientations that swap width and height.
_TURNED: Final = (5, 6, 7, 8)


class Budget:
    """An amount that threads share: each waits until enough is left for it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._arrival = threading.Lock()
        self._changed = threading.Condition()

    @contextmanager
    def held(self, amount: int) -> Iterator[None]:
        """Hold an amount, in the order of arrival; one above the limit is held alone."""
        with self._arrival, self._changed:
            self._changed.wait_for(lambda: not self._held or self._held + amount <= self._limit)
            self._held += amount
        try:
            yield
        finally:
            with self._changed:
                self._held -= amount
                self._changed.notify_all()


decoded_at_once = Budget(DECODED_PIXELS)

# Registers all readers, which Pillow otherwise does later.
Image.init()

# glibc returns freed blocks of 32 MB and more to the system, but keeps each thread's blocks of
# Pillow's usual 16 MB (Pillow, "Block allocator"; mallopt(3), M_MMAP_THRESHOLD).
Image.core.set_block_size(64 * 1024 * 1024)  # type: ignore[attr-defined]

# Pillow's own limit holds for the whole process and allows twice its value; `opened` checks ours.
Image.MAX_IMAGE_PIXELS = None


class Reason(StrEnum):
    """Why a file is refused."""

    EMPTY = "empty"
    NOT_AN_IMAGE = "not an image"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"
    TOO_LARGE = "too large"


class ImageRefused(Exception):
    """A file that can't be used as an image: `reason` for programs, the message for people."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclass(frozen=True)
class DecodedImage:
    """A decoded image: upright RGB pixels, and facts of its source."""

    pixels: Image.Image
    width: int
    """Of the source, upright; `pixels` may be smaller."""
    height: int
    format: str
    shown_as_is: bool
    """Whether browsers show the source upright and in its colors; else it needs a display copy."""


@contextmanager
def open_image(
    data: bytes, *, max_pixels: int, at_least: int | None = None
) -> Iterator[DecodedImage]:
    """Decode a file's bytes to upright RGB: an animation's first frame, with transparent parts on
    white.

    Holds a part of the process's budget of pixels until the context ends. With `at_least`, the
    image may be reduced as long as its shorter side keeps that many pixels: the decoder of JPEG
    reduces to a half, a quarter or an eighth during the inverse cosine transform, which is several
    times faster, and images of any format are reduced while twice `at_least` remain.

    Raises ImageRefused for an empty, truncated or corrupt file, for a file that is no image of a
    known format, and, before decoding, for an image of more than `max_pixels` pixels.
    """
    with loaded(data, max_pixels=max_pixels, at_least=at_least) as image:
        try:
            decoded = _upright_rgb(image, at_least)
        except Exception as error:
            raise _broken(error) from error
        # Free the source before the image is used.
        if decoded.pixels is not image.pixels:
            image.pixels.close()
        yield decoded


@dataclass(frozen=True)
class Loaded:
    """An image as decoded, not yet upright or RGB."""

    pixels: Image.Image
    format: str
    size: tuple[int, int]
    """Of the source, as stored; `pixels` may be smaller."""
    orientation: int
    """The EXIF orientation that is still to be applied, 1 to 8."""


@contextmanager
def loaded(data: bytes, *, max_pixels: int, at_least: int | None = None) -> Iterator[Loaded]:
    """Decode as `open_image` does, but leave colors and orientation as they are."""
    image = opened(data, max_pixels=max_pixels)
    size = image.size
    if at_least is not None:
        image.draft(None, (at_least, at_least))
    # The decoder holds a progressive JPEG whole, even if it is reduced.
    width, height = size if image.info.get("progressive") else image.size
    weight = width * height * WEIGHTS.get(image.format or "", 1)
    with decoded_at_once.held(weight) if weight > SMALL_PIXELS else nullcontext():
        try:
            image.load()
            decoded = Loaded(image, image.format or "", size, orientation_of(image))
        except Exception as error:
            # On hostile bytes decoders raise errors of almost any type.
            raise _broken(error) from error
        del image
        yield decoded


def opened(data: bytes, *, max_pixels: int) -> Image.Image:
    """Read an image's header; nothing is decoded yet. Raises ImageRefused as `open_image`."""
    if not data:
        raise ImageRefused(Reason.EMPTY, "The file is empty.")
    if _is_short_webp(data):
        raise ImageRefused(Reason.TRUNCATED, _TRUNCATED)
    image = _open(data)
    if image.width * image.height > max_pixels:
        raise ImageRefused(
            Reason.TOO_LARGE,
            f"The image has {image.width} × {image.height} pixels; {max_pixels} are allowed.",
        )
    return image


def _upright_rgb(image: Loaded, at_least: int | None) -> DecodedImage:
    source = image.pixels
    factor = 1 if at_least is None else max(1, min(source.size) // (2 * at_least))
    pixels = upright(rgb(source, image.format, factor), image.orientation)
    width, height = upright_size(image.size, image.orientation)
    return DecodedImage(
        pixels=pixels,
        width=width,
        height=height,
        format=image.format,
        shown_as_is=image.format in ("JPEG", "MPO")
        and source.mode in ("RGB", "L")
        and image.orientation == 1
        and max(image.size) <= DISPLAY_SIDE,
    )


def jpeg_bytes(pixels: Image.Image, *, longest_side: int, quality: int) -> bytes:
    """Return a JPEG whose longest side is at most `longest_side`; never enlarged."""
    longest = max(pixels.size)
    if longest > longest_side:
        width, height = (max(1, round(side * longest_side / longest)) for side in pixels.size)
        # `Image.thumbnail` does the same to a copy of the whole.
        pixels = pixels.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=3.0)
    target = io.BytesIO()
    profile = pixels.info.get("icc_profile")
    pixels.save(target, "JPEG", quality=quality, optimize=True, icc_profile=profile)
    return target.getvalue()


def thumbnail_bytes(image: DecodedImage) -> bytes:
    """Return the image's thumbnail, a JPEG."""
    return jpeg_bytes(image.pixels, longest_side=THUMBNAIL_SIDE, quality=85)


def display_bytes(image: DecodedImage) -> bytes | None:
    """Return a JPEG to show in place of the source, or None if the source can be shown."""
    if image.shown_as_is:
        return None
    return jpeg_bytes(image.pixels, longest_side=DISPLAY_SIDE, quality=92)


def _open(data: bytes) -> Image.Image:
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError as error:
        name = _named_format(data)
        if name in _READ:
            raise ImageRefused(
                Reason.CORRUPT, f"The file begins as a {name} does, but cannot be read as one."
            ) from error
        text = "The file is not an image of a known format."
        if name:
            text = f"The file is a {name} image, which can't be read here; save it as JPEG or PNG."
            text += _NO_HEIF if name == "HEIC" else ""
        raise ImageRefused(Reason.NOT_AN_IMAGE, text) from error
    except Exception as error:
        raise _broken(error) from error


def _named_format(data: bytes) -> str:
    """The name of an image's format by the file's first bytes, whether it can be read here or not;
    empty if unknown.
    """
    for signature, name in _SIGNATURES.items():
        if data.startswith(signature):
            return name
    if data.startswith((b"\xff\n", b"\0\0\0\x0cJXL ")):
        return "JPEG XL"
    # ISO/IEC 23008-12: the kind of a HEIF file is its brand.
    if data[4:8] == b"ftyp" and data[8:12] in (b"heic", b"heix", b"heim", b"heis", b"mif1"):
        return "HEIC"
    return ""


def _is_short_webp(data: bytes) -> bool:
    """Whether a WebP file is shorter than its header says; its decoder would call that corrupt."""
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return False
    return int.from_bytes(data[4:8], "little") + 8 > len(data)


def _broken(error: Exception) -> ImageRefused:
    text = str(error)
    if "truncated" in text.lower() or isinstance(error, EOFError):
        return ImageRefused(Reason.TRUNCATED, _TRUNCATED)
    if isinstance(error, MemoryError):
        return ImageRefused(Reason.TOO_LARGE, "The image does not fit into memory.")
    return ImageRefused(Reason.CORRUPT, f"The image is corrupt: {text or type(error).__name__}.")


def orientation_of(image: Image.Image) -> int:
    """The EXIF orientation that is still to be applied; damaged EXIF data counts as upright."""
    # In a JPEG without EXIF or XMP, `getexif` takes as long as opening the file.
    if image.format in ("JPEG", "MPO") and not {"exif", "xmp"} & image.info.keys():
        return 1
    try:
        value = image.getexif().get(_EXIF_ORIENTATION, 1)
    except Exception:
        return 1
    return value if value in _UPRIGHT else 1


def upright_size(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    """Width and height of an image once it is turned as an EXIF orientation says."""
    return size[::-1] if orientation in _TURNED else size


def upright(pixels: Image.Image, orientation: int) -> Image.Image:
    """Return the pixels turned as an EXIF orientation says, without the file's metadata."""
    pixels = pixels.transpose(_UPRIGHT[orientation]) if orientation != 1 else pixels
    # These are needed to interpret the pixels; Pillow would write anything else into copies.
    needed = ("icc_profile", "transparency")
    pixels.info = {name: pixels.info[name] for name in needed if name in pixels.info}
    return pixels


def rgb(image: Image.Image, format: str, factor: int = 1) -> Image.Image:
    """Return RGB, one pixel for `factor` × `factor` of an image in `format`; transparency on white.

    Converts tile by tile, so that only the image and the result are in memory whole.
    """
    if image.mode == "RGB" and "transparency" not in image.info and factor == 1:
        return image
    convert = _conversion(image, format)
    result = Image.new("RGB", (-(-image.width // factor), -(-image.height // factor)))
    for left, top, part in _tiles(image, factor):
        result.paste(convert(part).reduce(factor), (left // factor, top // factor))
    profile = image.info.get("icc_profile") or b""
    # Only a profile of RGB applies to the result.
    result.info = {"icc_profile": profile} if profile[16:20] == b"RGB " else {}
    return result


def _tiles(image: Image.Image, factor: int) -> Iterator[tuple[int, int, Image.Image]]:
    """Left, top and pixels of parts of an image; left and top are multiples of `factor`."""
    width = factor * max(1, min(image.width, TILE_PIXELS) // factor)
    height = factor * max(1, TILE_PIXELS // (width * factor))
    for top, left in product(range(0, image.height, height), range(0, image.width, width)):
        right, bottom = min(left + width, image.width), min(top + height, image.height)
        yield left, top, image.crop((left, top, right, bottom))


def _conversion(image: Image.Image, format: str) -> Callable[[Image.Image], Image.Image]:
    """Return a function that converts parts of the image to RGB."""
    if image.mode.startswith("I") or image.mode == "F":
        low, high = _range(image)
        return lambda part: Image.fromarray(_to_bytes(part, low, high)).convert("RGB")
    if image.mode == "CMYK" and format == "JPEG" and "adobe" not in image.info:
        # Pillow treats every CMYK JPEG as one of Adobe's, which are stored inverted.
        return lambda part: Image.eval(part, lambda value: 255 - value).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        return _on_white
    return lambda part: part.convert("RGB")


def _on_white(part: Image.Image) -> Image.Image:
    transparent = part.convert("RGBA")
    white = Image.new("RGBA", transparent.size, "white")
    return Image.alpha_composite(white, transparent).convert("RGB")


def _range(image: Image.Image) -> tuple[float, float]:
    """Return the samples that become 0 and 255: 0 and 65535 for integers that fit 16 bits, 0 and 1
    for floats between them, else the image's own extrema.
    """
    if image.mode == "F":
        # Pillow's own extrema are wrong if the first value is NaN.
        parts = (_numbers(part) for _, _, part in _tiles(image, 1))
        extrema = np.array([(part.min(), part.max()) for part in parts])
        low, high = float(extrema[:, 0].min()), float(extrema[:, 1].max())
        return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)
    low, high = np.array(image.getextrema(), np.float64).tolist()
    return (0.0, 65535.0) if low >= 0 and high <= 65535 else (low, high)


def _numbers(part: Image.Image) -> np.ndarray:
    return np.nan_to_num(np.asarray(part).astype(np.float64))


def _to_bytes(part: Image.Image, low: float, high: float) -> np.ndarray:
    """Scale 16-bit, 32-bit or float samples (h, w) from `low`–`high` to 0–255."""
    return np.round((_numbers(part) - low) * (255 / (high - low or 1))).astype(np.uint8)
