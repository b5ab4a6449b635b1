"""Images that are decoded at a part of their size."""

import io

import numpy as np
import pytest
from PIL import Image

from retrieval.images import decoding
from retrieval.images.decoding import THUMBNAIL_SIDE, ImageRefused, Reason, thumbnail_bytes
from tests.retrieval.making import decoded, encoded, stored_turned

pytestmark = pytest.mark.pure

LIMIT = 100_000_000


def gradient(width, height):
    """An image whose colour tells the place: red from left to right, green from top to bottom."""
    across = np.linspace(0, 255, width)[None, :].repeat(height, 0)
    down = np.linspace(0, 255, height)[:, None].repeat(width, 1)
    return Image.fromarray(np.stack([across, down, 0 * down + 90], axis=2).astype(np.uint8))


def turned(image, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(stored_turned(image, orientation), "JPEG", exif=exif, quality=95)


@pytest.mark.parametrize(
    ("at_least", "size"),
    [(800, (1200, 800)), (401, (1200, 800)), (400, (600, 400)), (224, (600, 400)),
     (200, (300, 200)), (100, (150, 100)), (1, (3, 2)), (5000, (1200, 800))],
)  # fmt: skip
def test_the_shorter_side_keeps_what_is_asked_for(at_least, size):
    data = encoded(gradient(1200, 800), "JPEG")
    image = decoded(data, max_pixels=LIMIT, at_least=at_least)
    assert image.pixels.size == size
    assert (image.width, image.height, image.format) == (1200, 800, "JPEG")
    assert image.shown_as_is


@pytest.mark.parametrize("orientation", [1, 3, 5, 6])
def test_a_reduced_image_is_upright_and_like_the_whole_one(orientation):
    data = turned(gradient(1200, 800), orientation)
    whole = decoded(data, max_pixels=LIMIT)
    reduced = decoded(data, max_pixels=LIMIT, at_least=100)
    assert reduced.pixels.size == (150, 100)
    assert (reduced.width, reduced.height) == (whole.width, whole.height) == (1200, 800)
    small = whole.pixels.resize((150, 100), Image.Resampling.BOX)
    difference = np.abs(np.asarray(small, np.int16) - np.asarray(reduced.pixels, np.int16))
    assert difference.mean() < 2


def test_the_first_image_of_several_is_reduced():
    target = io.BytesIO()
    gradient(1600, 1600).save(target, "MPO", save_all=True, append_images=[gradient(8, 8)])
    image = decoded(target.getvalue(), max_pixels=LIMIT, at_least=200)
    assert (image.format, image.pixels.size, image.width) == ("MPO", (200, 200), 1600)


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize(("at_least", "size"), [(60, (300, 200)), (50, (150, 100)), (20, (60, 40))])
def test_of_other_formats_twice_what_is_asked_for_is_left(kind, at_least, size):
    image = decoded(encoded(gradient(300, 200), kind), max_pixels=LIMIT, at_least=at_least)
    assert (image.pixels.size, image.width, image.height) == (size, 300, 200)


@pytest.mark.parametrize("mode", ["RGB", "P", "RGBA", "I;16", "1", "CMYK", "F"])
@pytest.mark.parametrize("size", [(601, 517), (3, 100_001)])
def test_a_reduced_image_is_the_mean_of_the_whole_one(mode, size, monkeypatch):
    monkeypatch.setattr(decoding, "TILE_PIXELS", 20_000)
    source = gradient(*size)
    if mode == "F":
        source = Image.fromarray(np.asarray(source.convert("L"), np.float32) / 255)
    elif mode == "I;16":
        source = Image.fromarray(np.asarray(source.convert("L"), np.uint16) * 257)
    else:
        source = source.convert(mode)
    data = encoded(source, "TIFF" if mode in ("F", "CMYK") else "PNG")
    whole = decoded(data, max_pixels=LIMIT)
    reduced = decoded(data, max_pixels=LIMIT, at_least=max(1, min(size) // 6))
    assert whole.pixels.size == size
    factor = 3 if min(size) > 3 else 1
    wanted = np.asarray(whole.pixels.reduce(factor), np.int16)
    assert np.array_equal(wanted, np.asarray(reduced.pixels, np.int16))


def test_a_thumbnail_of_a_reduced_jpeg_is_that_of_the_whole():
    whole, reduced = (
        thumbnail_bytes(decoded(encoded(gradient(3000, 2000), "JPEG", quality=95), at_least=side))
        for side in (None, THUMBNAIL_SIDE)
    )
    first, second = (np.asarray(Image.open(io.BytesIO(one)), np.int16) for one in (whole, reduced))
    assert first.shape == second.shape == (256, 384, 3)
    assert np.abs(first - second).max() <= 6


def test_a_truncated_file_is_refused_however_few_pixels_are_asked_for():
    data = encoded(gradient(1200, 800), "JPEG")
    with pytest.raises(ImageRefused) as raised:
        decoded(data[: len(data) * 9 // 10], max_pixels=LIMIT, at_least=1)
    assert raised.value.reason == Reason.TRUNCATED
