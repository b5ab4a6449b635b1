"""Removal of metadata from image files: EXIF (places, names, serial numbers, embedded thumbnails),
XMP, IPTC, comments, texts, and anything after the image's end.

Metadata is removed when bytes leave the application, not on import: stored files keep their
SHA-256, and images left in place are cleaned as well. Color profiles stay, since they define the
colors.

The containers of JPEG, PNG and WebP are taken apart and put together again without decoding. Only
parts that are known to be harmless are copied, so that new or damaged parts cannot leak metadata.
No maintained library does this without an external program. ITU-T T.81 annex B, the W3C's PNG
(third edition) and RFC 9649 describe the formats.
"""

from __future__ import annotations

import io
import re
from typing import Final

from PIL import Image

from retrieval.images.decoding import jpeg_bytes, loaded, opened, orientation_of, rgb, upright

_QUALITY: Final = 95
#: Frames, tables, restarts and scans.
_JPEG_CODING: Final = frozenset({*range(0xC0, 0xD0), 0xDA, 0xDB, 0xDC, 0xDD}) - {0xC8}
_JPEG_NEXT: Final = re.compile(rb"\xff+[\x01-\xcf\xd8-\xfe]")
_PNG_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_PNG_CHUNKS: Final = frozenset(
    (b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"cHRM", b"gAMA", b"iCCP", b"sBIT", b"sRGB",
     b"cICP", b"mDCV", b"cLLI", b"bKGD", b"hIST", b"pHYs", b"acTL", b"fcTL", b"fdAT")
)  # fmt: skip
_WEBP_CHUNKS: Final = frozenset((b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ICCP"))
_WEBP_METADATA_FLAGS: Final = 0b00001100
_PNG_MODES: Final = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")


def without_metadata(data: bytes, *, max_pixels: int) -> bytes:
    """Return an image upright and without metadata.

    An upright JPEG, PNG or WebP keeps its coded pixels. A turned or irregular JPEG is encoded again
    at quality 95, any other image (the first frame of an animated WebP or a GIF) as a PNG of the
    same pixels; licenses without derivatives allow such technical changes of format (CC 4.0,
    section 2(a)(4)). Raises ImageRefused for a file that can't be read.
    """
    image = opened(data, max_pixels=max_pixels)
    kind = image.format or ""
    if kind in _CONTAINERS and _orientation(image, data, max_pixels) == 1:
        try:
            return _CONTAINERS[kind](data)
        except (ValueError, IndexError):
            # The container is damaged, but a lenient decoder may still read it.
            pass
    return _encoded_again(data, max_pixels)


def _orientation(image: Image.Image, data: bytes, max_pixels: int) -> int:
    if image.format != "PNG":
        return orientation_of(image)
    # It may follow the pixels, and Pillow would decode them to find it.
    if not any(kind in data for kind in (b"eXIf", b"tEXt", b"zTXt", b"iTXt")):
        return 1
    with loaded(data, max_pixels=max_pixels) as whole:
        return whole.orientation


def _encoded_again(data: bytes, max_pixels: int) -> bytes:
    with loaded(data, max_pixels=max_pixels) as image:
        is_jpeg = image.format in ("JPEG", "MPO")
        fits = image.pixels.mode in (("L", "RGB") if is_jpeg else _PNG_MODES)
        pixels = image.pixels if fits else rgb(image.pixels, image.format)
        pixels = upright(pixels, image.orientation)
        if is_jpeg:
            return jpeg_bytes(pixels, longest_side=max(pixels.size), quality=_QUALITY)
        target = io.BytesIO()
        pixels.save(target, "PNG")
        return target.getvalue()


def _jpeg(data: bytes) -> bytes:
    parts, offset = [data[:2]], 2
    while True:
        if data[offset] != 0xFF:
            raise ValueError("no marker")
        while data[offset] == 0xFF:
            offset += 1
        marker = data[offset]
        if marker == 0xD9:
            return b"".join((*parts, b"\xff\xd9"))
        end = offset + 1 + int.from_bytes(data[offset + 1 : offset + 3], "big")
        body = data[offset + 3 : end]
        if marker in _JPEG_CODING:
            parts.append(b"\xff" + data[offset:end])
        elif marker == 0xE0 and body.startswith(b"JFIF\0"):
            # Its last two bytes are the size of a thumbnail, which would follow.
            parts.append(b"\xff\xe0\x00\x10" + body[:12] + b"\0\0")
        elif marker == 0xE2 and body.startswith(b"ICC_PROFILE\0"):
            parts.append(b"\xff" + data[offset:end])
        elif marker == 0xEE and body.startswith(b"Adobe"):
            parts.append(b"\xff\xee\x00\x0e" + body[:12])
        elif not (0xE0 <= marker <= 0xEF or marker == 0xFE):
            raise ValueError("an unknown segment")
        offset = end
        if marker == 0xDA:
            following = _JPEG_NEXT.search(data, offset)
            if following is None:
                raise ValueError("no end")
            parts.append(data[offset : following.start()])
            offset = following.start()


def _png(data: bytes) -> bytes:
    parts, offset = [_PNG_SIGNATURE], len(_PNG_SIGNATURE)
    while True:
        end = offset + 12 + int.from_bytes(data[offset : offset + 4], "big")
        kind = data[offset + 4 : offset + 8]
        if end > len(data):
            raise ValueError("no end")
        if kind in _PNG_CHUNKS:
            parts.append(data[offset:end])
        if kind == b"IEND":
            return b"".join(parts)
        offset = end


def _webp(data: bytes) -> bytes:
    parts, offset, whole = [], 12, 8 + int.from_bytes(data[4:8], "little")
    while offset < whole:
        size = int.from_bytes(data[offset + 4 : offset + 8], "little")
        end = offset + 8 + size + size % 2
        kind, body = data[offset : offset + 4], data[offset + 8 : end]
        if kind in (b"ANIM", b"ANMF") or end > len(data):
            raise ValueError("animated, or no end")
        if kind == b"VP8X":
            body = bytes([body[0] & ~_WEBP_METADATA_FLAGS]) + body[1:]
        if kind in _WEBP_CHUNKS:
            parts.append(kind + size.to_bytes(4, "little") + body)
        offset = end
    chunks = b"WEBP" + b"".join(parts)
    return b"RIFF" + len(chunks).to_bytes(4, "little") + chunks


_CONTAINERS: Final = {"JPEG": _jpeg, "MPO": _jpeg, "PNG": _png, "WEBP": _webp}
