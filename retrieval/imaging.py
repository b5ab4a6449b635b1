"""Pictures of any kind become upright RGB, and anything else is refused by name.

Nothing here knows the database or where files lie.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from PIL import Image, UnidentifiedImageError

# Readers that run no other program and whose headers tell the size that they will decode to. MPO
# comes through the reader of JPEG.
FORMATS: Final = (
    "JPEG", "PNG", "GIF", "WEBP", "AVIF", "TIFF", "BMP", "JPEG2000", "PPM",
)  # fmt: skip

THUMBNAIL_SIDE: Final = 384
DISPLAY_SIDE: Final = 2048
MAX_BYTES: Final = 512 * 1024 * 1024

_SIGNATURES: Final = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG": "PNG",
    b"GIF8": "GIF",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
    b"BM": "BMP",
}
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
# Those that exchange width and height.
_TURNED: Final = (5, 6, 7, 8)

# Readers register when their modules are loaded, which Pillow otherwise puts off.
Image.init()

# Pillow's own limit is one for the whole process and allows twice its value; ours is checked on
# each header.
Image.MAX_IMAGE_PIXELS = None


class Reason(StrEnum):
    """Why a file is no picture for the corpus."""

    EMPTY = "empty"
    NOT_AN_IMAGE = "not an image"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"
    TOO_LARGE = "too large"


class ImageRefused(Exception):
    """A file that cannot be taken in: `reason` for programs, the text for people."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclass(frozen=True)
class Picture:
    """A decoded picture: upright RGB pixels and what its source was."""

    pixels: Image.Image
    width: int
    """Of the source, upright; the pixels are fewer where fewer were asked for."""
    height: int
    format: str
    shown_as_is: bool
    """Whether a browser shows the source bytes upright and in colour: no display copy is needed."""


def open_picture(data: bytes, *, max_pixels: int, at_least: int | None = None) -> Picture:
    """Decode a file's bytes to upright RGB; of an animation the first frame; transparency on white.

    With `at_least`, a JPEG may be decoded at a half, a quarter or an eighth of its size (the
    decoder scales while it undoes the cosine transform, which is several times faster), as long as
    its shorter side keeps that many pixels. Any other format comes whole.

    Raises ImageRefused for an empty, truncated or corrupt file, for one that is no image of a known
    format, and, before anything is decoded, for one of more than `max_pixels` pixels.
    """
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
    full = image.size
    try:
        reduced = at_least is not None and image.draft(None, (at_least, at_least)) is not None
        image.load()
        orientation = _orientation(image)
        pixels = _upright(_rgb(image), orientation)
    except Exception as error:
        # Decoders meet hostile bytes with errors of almost any type.
        raise _broken(error) from error
    width, height = pixels.size
    if reduced:
        width, height = full[::-1] if orientation in _TURNED else full
    profile = image.info.get("icc_profile")
    if profile and image.mode == "RGB":
        pixels.info["icc_profile"] = profile
    return Picture(
        pixels=pixels,
        width=width,
        height=height,
        format=image.format or "",
        shown_as_is=image.format in ("JPEG", "MPO")
        and image.mode in ("RGB", "L")
        and orientation == 1
        and max(full) <= DISPLAY_SIDE,
    )


def jpeg_bytes(pixels: Image.Image, *, longest_side: int, quality: int) -> bytes:
    """Return the picture as a JPEG whose longest side is at most `longest_side`; never enlarged."""
    small = pixels.copy() if max(pixels.size) > longest_side else pixels
    small.thumbnail((longest_side, longest_side), Image.Resampling.LANCZOS, reducing_gap=3.0)
    target = io.BytesIO()
    profile = pixels.info.get("icc_profile")
    small.save(target, "JPEG", quality=quality, optimize=True, icc_profile=profile)
    return target.getvalue()


def thumbnail_bytes(picture: Picture) -> bytes:
    """Return the picture's thumbnail, a JPEG."""
    return jpeg_bytes(picture.pixels, longest_side=THUMBNAIL_SIDE, quality=85)


def display_bytes(picture: Picture) -> bytes | None:
    """Return a JPEG to show in place of the source, or None where the source serves."""
    if picture.shown_as_is:
        return None
    return jpeg_bytes(picture.pixels, longest_side=DISPLAY_SIDE, quality=92)


def _open(data: bytes) -> Image.Image:
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError as error:
        for signature, name in _SIGNATURES.items():
            if data.startswith(signature):
                raise ImageRefused(
                    Reason.CORRUPT, f"The file begins as a {name} does, but cannot be read as one."
                ) from error
        raise ImageRefused(
            Reason.NOT_AN_IMAGE, "The file is not an image of a known format."
        ) from error
    except Exception as error:
        raise _broken(error) from error


def _is_short_webp(data: bytes) -> bool:
    """Tell whether a WebP file is shorter than it says; its decoder calls that corrupt."""
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


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation that is still to be applied; damaged EXIF data counts as upright."""
    # Where a JPEG says nothing of it, looking takes as long as opening the file.
    if image.format in ("JPEG", "MPO") and not {"exif", "xmp"} & image.info.keys():
        return 1
    try:
        value = image.getexif().get(_EXIF_ORIENTATION, 1)
    except Exception:
        return 1
    return value if value in _UPRIGHT else 1


def _upright(pixels: Image.Image, orientation: int) -> Image.Image:
    return pixels.transpose(_UPRIGHT[orientation]) if orientation != 1 else pixels


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        return Image.fromarray(_to_bytes(np.asarray(image))).convert("RGB")
    if image.mode == "CMYK" and image.format == "JPEG" and "adobe" not in image.info:
        # Pillow takes every CMYK JPEG for one of Adobe's, which are stored inverted.
        return Image.eval(image, lambda value: 255 - value).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        see_through = image.convert("RGBA")
        white = Image.new("RGBA", see_through.size, "white")
        return Image.alpha_composite(white, see_through).convert("RGB")
    return image.convert("RGB") if image.mode != "RGB" else image


def _to_bytes(values: np.ndarray) -> np.ndarray:
    """Bring 16-bit, 32-bit or float samples (h, w) to 0–255.

    Integers that fit 16 bits are scaled as such, floats within 0–1 likewise; others by their own
    range.
    """
    wide = np.nan_to_num(values.astype(np.float64))
    low, high = float(wide.min()), float(wide.max())
    if values.dtype.kind == "f":
        low, high = (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)
    elif low >= 0 and high <= 65535:
        low, high = 0.0, 65535.0
    return np.round((wide - low) * (255 / (high - low or 1))).astype(np.uint8)
