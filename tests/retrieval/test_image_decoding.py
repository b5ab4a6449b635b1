import io
import runpy
import struct
import sys
import types
import zlib

import numpy as np
import pytest
from PIL import Image, ImageFile

from retrieval.images import decoding
from retrieval.images.decoding import ImageRefused, Reason, display_bytes, thumbnail_bytes
from tests.retrieval.making import decoded, encoded, jpeg, stored_turned

pytestmark = pytest.mark.pure

LIMIT = 1_000_000
RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def corners(image):
    """The colours of an image's upper left, upper right, lower left and lower right."""
    pixels, (right, bottom) = image.pixels, (image.width - 1, image.height - 1)
    places = [(0, 0), (right, 0), (0, bottom), (right, bottom)]
    return [pixels.getpixel(place) for place in places]


def near(colour, wanted, by=12):
    return all(abs(a - b) <= by for a, b in zip(colour, wanted, strict=True))


def quarters():
    """An image, 6 × 4, red, green, blue and white from the upper left to the lower right."""
    image = Image.new("RGB", (6, 4), RED)
    image.paste(GREEN, (3, 0, 6, 2))
    image.paste(BLUE, (0, 2, 3, 4))
    image.paste(WHITE, (3, 2, 6, 4))
    return image


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied_to_the_pixels(orientation, kind):
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(stored_turned(quarters(), orientation), kind, exif=exif, **options)
    image = decoded(data, max_pixels=LIMIT)
    assert (image.width, image.height) == (6, 4)
    assert corners(image) == [RED, GREEN, BLUE, WHITE]


def test_a_turned_jpeg_is_shown_through_an_upright_copy():
    exif = Image.Exif()
    exif[0x0112] = 6
    wide = Image.new("RGB", (64, 48), RED)
    wide.paste(BLUE, (0, 24, 64, 48))
    data = encoded(wide.transpose(Image.Transpose.ROTATE_90), "JPEG", exif=exif, quality=95)
    image = decoded(data, max_pixels=LIMIT)
    assert not image.shown_as_is
    for copy in (display_bytes(image), thumbnail_bytes(image)):
        shown = Image.open(io.BytesIO(copy))
        assert shown.size == (64, 48)
        assert shown.getexif().get(0x0112, 1) == 1
        assert near(shown.getpixel((32, 4)), RED)
        assert near(shown.getpixel((32, 44)), BLUE)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize("exif", [b"Exif\0\0nonsense", b"Exif\0\0II*\0\xff\xff\xff\xff", b""])
def test_damaged_exif_counts_as_upright(exif):
    image = decoded(jpeg(exif=exif), max_pixels=LIMIT)
    assert (image.width, image.height) == (40, 30)


def test_a_large_jpeg_is_shown_smaller():
    image = decoded(jpeg(size=(3000, 1000)), max_pixels=10_000_000)
    assert Image.open(io.BytesIO(display_bytes(image))).size == (2048, 683)
    assert (image.width, image.height) == (3000, 1000)


def test_thumbnails_keep_their_shape_and_are_never_enlarged():
    wide = decoded(jpeg(size=(1000, 500)), max_pixels=LIMIT)
    assert Image.open(io.BytesIO(thumbnail_bytes(wide))).size == (384, 192)
    small = decoded(jpeg(size=(20, 10)), max_pixels=LIMIT)
    assert Image.open(io.BytesIO(thumbnail_bytes(small))).size == (20, 10)
    thin = decoded(jpeg(size=(2000, 1)), max_pixels=LIMIT)
    assert Image.open(io.BytesIO(thumbnail_bytes(thin))).size == (384, 1)


def test_adobes_inverted_cmyk_and_plain_cmyk_come_out_alike():
    red = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    adobe = encoded(red, "JPEG", quality=95)
    assert b"Adobe" in adobe
    start = adobe.index(b"\xff\xee")
    length = struct.unpack(">H", adobe[start + 2 : start + 4])[0]
    without_marker = adobe[:start] + adobe[start + 2 + length :]
    inverted = encoded(Image.eval(red, lambda v: 255 - v), "JPEG", quality=95)
    plain = inverted[:start] + inverted[start + 2 + length :]
    assert b"Adobe" not in plain
    assert b"Adobe" not in without_marker
    for data in (adobe, plain):
        image = decoded(data, max_pixels=LIMIT)
        assert near(image.pixels.getpixel((8, 8)), RED)
        assert not image.shown_as_is
    tiff = decoded(encoded(red, "TIFF"), max_pixels=LIMIT)
    assert near(tiff.pixels.getpixel((8, 8)), RED)


def test_sixteen_bit_grey_keeps_its_tones():
    ramp = np.array([[0, 257 * 64, 257 * 128, 65535]], dtype=np.uint16)
    for kind in ("PNG", "TIFF"):
        image = decoded(encoded(Image.fromarray(ramp), kind), max_pixels=LIMIT)
        tones = [image.pixels.getpixel((x, 0)) for x in range(4)]
        assert tones == [(0, 0, 0), (64, 64, 64), (128, 128, 128), (255, 255, 255)]


def test_wide_integers_and_floats_are_scaled_to_what_they_hold():
    def tones(values):
        image = decoded(encoded(Image.fromarray(values), "TIFF"), max_pixels=LIMIT)
        return [image.pixels.getpixel((x, 0))[0] for x in range(values.shape[1])]

    assert tones(np.array([[0, 50_000, 100_000]], dtype=np.int32)) == [0, 128, 255]
    assert tones(np.array([[0.0, 0.5, 1.0]], dtype=np.float32)) == [0, 128, 255]
    assert tones(np.array([[-1.0, 0.0, 1.0]], dtype=np.float32)) == [0, 128, 255]
    assert tones(np.array([[np.nan, 0.0, 0.5]], dtype=np.float32)) == [0, 0, 128]
    assert tones(np.full((1, 2), 7, dtype=np.float32)) == [0, 0]


@pytest.mark.parametrize(
    ("mode", "colours", "wanted"),
    [
        ("RGBA", [(255, 0, 0, 255), (0, 0, 0, 0)], [RED, WHITE]),
        ("LA", [(0, 255), (0, 128)], [(0, 0, 0), (127, 127, 127)]),
        ("1", [0, 1], [(0, 0, 0), WHITE]),
        ("L", [7, 200], [(7, 7, 7), (200, 200, 200)]),
    ],
)
def test_every_mode_of_png_becomes_rgb(mode, colours, wanted):
    source = Image.new(mode, (2, 1))
    for x, colour in enumerate(colours):
        source.putpixel((x, 0), colour)
    image = decoded(encoded(source, "PNG"), max_pixels=LIMIT)
    assert image.pixels.mode == "RGB"
    assert [image.pixels.getpixel((x, 0)) for x in (0, 1)] == wanted


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_of_an_animation_the_first_frame_is_taken(kind):
    frames = [Image.new("RGB", (8, 8), colour) for colour in (RED, GREEN, BLUE)]
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    image = decoded(data, max_pixels=LIMIT)
    assert image.pixels.getpixel((4, 4)) == RED


@pytest.mark.parametrize("kind", ["BMP", "AVIF", "JPEG2000", "PPM", "MPO"])
def test_other_formats_are_read(kind):
    options = {"save_all": True, "append_images": [quarters()]} if kind == "MPO" else {}
    image = decoded(encoded(quarters(), kind, **options), max_pixels=LIMIT)
    assert (image.format, image.width, image.height) == (kind, 6, 4)


def header_only(width, height):
    """A PNG that claims a size and has no pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    body = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + body + struct.pack(">I", 0) + b"IDAT" + b"\x35\xaf\x06\x1e"


NOISE = Image.fromarray(
    np.random.default_rng(1).integers(0, 255, (64, 64, 3), dtype=np.uint8), "RGB"
)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", Reason.EMPTY, id="empty"),
        pytest.param(b"<html>404 not found</html>", Reason.NOT_AN_IMAGE, id="web page"),
        pytest.param(b"\0" * 4096, Reason.NOT_AN_IMAGE, id="zeros"),
        pytest.param(b"%!PS-Adobe-3.0 EPSF-3.0\n", Reason.NOT_AN_IMAGE, id="postscript"),
        pytest.param(encoded(NOISE, "JPEG")[:2000], Reason.TRUNCATED, id="half a JPEG"),
        pytest.param(encoded(NOISE, "PNG")[:2000], Reason.TRUNCATED, id="half a PNG"),
        pytest.param(encoded(NOISE, "WEBP")[:900], Reason.TRUNCATED, id="half a WebP"),
        pytest.param(jpeg()[:3], Reason.CORRUPT, id="three bytes of a JPEG"),
        pytest.param(
            b"\xff\xd8\xff\xe0" + b"x" * 500, Reason.TRUNCATED, id="JPEG without an image"
        ),
        pytest.param(b"\x89PNG\r\n\x1a\n" + b"?" * 99, Reason.CORRUPT, id="PNG without a header"),
        pytest.param(header_only(50_000, 50_000), Reason.TOO_LARGE, id="decompression bomb"),
    ],
)
def test_what_is_no_image_is_refused_by_reason(data, reason):
    with pytest.raises(ImageRefused) as refused:
        decoded(data, max_pixels=178_956_970)
    assert refused.value.reason == reason
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    ("data", "name"),
    [(b"\0\0\0\x18ftypheic" + b"\0" * 99, "HEIC"), (b"\xff\n" + b"\0" * 99, "JPEG XL")],
)
def test_a_format_that_is_not_read_is_named(data, name):
    with pytest.raises(ImageRefused, match=f"The file is a {name} image") as refused:
        decoded(data, max_pixels=1000)
    assert refused.value.reason == Reason.NOT_AN_IMAGE


def test_the_extra_for_heic_is_used_where_it_is_installed(monkeypatch):
    """A stand-in for pillow-heif, which reads one file."""

    class Heif(ImageFile.ImageFile):
        format = "HEIF"

        def _open(self):
            if self.fp.read() != whole:
                raise SyntaxError
            self._size, self._mode = (6, 4), "RGB"

        def load(self):
            self.load_prepare()
            return Image.Image.load(self)

    def register(*, thumbnails):
        assert not thumbnails
        monkeypatch.setitem(Image.OPEN, "HEIF", (Heif, None))
        monkeypatch.setattr(Image, "ID", [*Image.ID, "HEIF"])

    whole = b"\0\0\0\x18ftypheic" + b"\0" * 99
    module = types.SimpleNamespace(register_heif_opener=register)
    monkeypatch.setitem(sys.modules, "pillow_heif", module)
    found = runpy.run_path(decoding.__file__)
    with found["open_image"](whole, max_pixels=LIMIT) as image:
        assert (image.format, image.width, image.height) == ("HEIF", 6, 4)
        assert display_bytes(image)[:2] == b"\xff\xd8"
    with pytest.raises(found["ImageRefused"], match="begins as a HEIC does") as refused:
        found["opened"](whole[:50], max_pixels=LIMIT)
    assert refused.value.reason == Reason.CORRUPT


def test_a_png_with_changed_bytes_is_corrupt():
    data = bytearray(encoded(NOISE, "PNG"))
    middle = len(data) // 2
    data[middle : middle + 8] = bytes(8)
    with pytest.raises(ImageRefused) as refused:
        decoded(bytes(data), max_pixels=LIMIT)
    assert refused.value.reason == Reason.CORRUPT


def test_the_pixel_limit_is_exact():
    data = jpeg(size=(40, 30))
    assert decoded(data, max_pixels=1200).width == 40
    with pytest.raises(ImageRefused, match="40 × 30 pixels; 1199 are allowed"):
        decoded(data, max_pixels=1199)


def test_a_colour_profile_goes_with_the_copies():
    from PIL import ImageCms

    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    image = decoded(jpeg(icc_profile=profile), max_pixels=LIMIT)
    thumbnail = Image.open(io.BytesIO(thumbnail_bytes(image)))
    assert thumbnail.info["icc_profile"] == profile
