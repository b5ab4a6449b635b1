"""What decoding takes of memory, seen from outside: the peak of a process of its own."""

import subprocess
import sys

import pytest

from retrieval.images.decoding import WEIGHTS
from tests.processes import ROOT

# `ru_maxrss` wouldn't do: it begins with that of the process that started this one.
PEAK = """
from pathlib import Path

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

"""
DECODE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from retrieval.images.decoding import (
    DISPLAY_SIDE, display_bytes, jpeg_bytes, open_image, thumbnail_bytes,
)

def store(data):
    with open_image(data, max_pixels=10**9, at_least=DISPLAY_SIDE) as image:
        display_bytes(image)
        thumbnail_bytes(image)

data, threads = Path(sys.argv[1]).read_bytes(), int(sys.argv[2])
with open_image(Path(sys.argv[3]).read_bytes(), max_pixels=10**9) as image:
    jpeg_bytes(image.pixels, longest_side=8, quality=90)
before = peak()
with ThreadPoolExecutor(threads) as pool:
    list(pool.map(store, [data] * threads))
print(peak() - before)
"""

MAKE = """
import sys
from PIL import Image
path, kind, mode, side = sys.argv[1:]
options = {"speed": 10} if kind == "AVIF" else {}
Image.new(mode, (int(side), int(side))).save(path, kind, **options)
"""


def python(script, *arguments):
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def peak(folder, *, kind, mode, side, threads=1):
    """Bytes that decoding takes at its highest moment."""
    large, small = folder / "large", folder / "small"
    python(MAKE, large, kind, mode, side)
    python(MAKE, small, kind, mode, 8)
    return int(python(PEAK + DECODE, large, threads, small))


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("PNG", "RGB"), ("PNG", "RGBA"), ("PNG", "P"), ("PNG", "I;16"), ("GIF", "P"),
     ("WEBP", "RGBA"), ("AVIF", "RGBA"), ("TIFF", "F"), ("JPEG2000", "RGB"), ("JPEG", "RGB")],
)  # fmt: skip
def test_no_format_takes_more_than_its_weight_says(tmp_path, kind, mode):
    # The formats that aren't decoded in parts take as much for a pixel of a smaller image.
    side = 4200 if kind in WEIGHTS else 8200
    taken = peak(tmp_path, kind=kind, mode=mode, side=side)
    # Beside the decoder, the whole image's bytes and a half as large image of it.
    assert taken < (4 * WEIGHTS.get(kind, 1) + 4 + 2) * side**2


def test_threads_that_decode_large_images_take_the_memory_of_one(tmp_path):
    side = 9000
    alone = peak(tmp_path, kind="PNG", mode="RGBA", side=side)
    assert alone > 3 * side**2
    many = peak(tmp_path, kind="PNG", mode="RGBA", side=side, threads=6)
    assert many < 2 * alone


PREPARE = """
from PIL import Image
from retrieval.encoding.encoders import load_encoder

prepare = load_encoder("demo").images.prepare
prepare(Image.new("RGB", (200, 100)))
before = peak()
prepare(Image.new("RGB", (20_000, 1)))
print(peak() - before)
"""


def test_a_thin_image_is_not_made_a_hundred_times_as_long_for_a_model():
    # 96 × 1,920,000 pixels of which the model sees 96 × 96.
    assert int(python(PEAK + PREPARE)) < 96 * 1_920_000
