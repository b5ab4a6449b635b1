"""What decoding takes of memory, seen from outside: the peak of a process of its own."""

import json
import os
import subprocess
import sys

from retrieval.images.decoding import WEIGHTS
from tests.processes import ROOT

# `ru_maxrss` wouldn't do: it begins with that of the process that started this one.
TAKEN = """
from pathlib import Path

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

def taken(work):
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    work()
    return status("VmHWM") - before

"""
DECODE = """
import io, json, sys
from concurrent.futures import ThreadPoolExecutor
from PIL import Image
from retrieval.images.decoding import (
    DISPLAY_SIDE, display_bytes, jpeg_bytes, open_image, thumbnail_bytes,
)

def made(kind, mode, side):
    file = io.BytesIO()
    options = {"AVIF": {"speed": 10}, "PNG": {"compress_level": 1}}.get(kind, {})
    Image.new(mode, (side, side)).save(file, kind, **options)
    return file.getvalue()

def store(data):
    with open_image(data, max_pixels=10**9, at_least=DISPLAY_SIDE) as image:
        display_bytes(image)
        thumbnail_bytes(image)

def peak(kind, mode, side, threads):
    with open_image(made(kind, mode, 8), max_pixels=10**9) as image:
        jpeg_bytes(image.pixels, longest_side=8, quality=90)
    data = made(kind, mode, side)
    with ThreadPoolExecutor(threads) as pool:
        return taken(lambda: list(pool.map(store, [data] * threads)))

print(json.dumps([peak(*case) for case in json.loads(sys.argv[1])]))
"""
FORMATS = [
    ("PNG", "RGB"), ("PNG", "RGBA"), ("PNG", "P"), ("PNG", "I;16"), ("GIF", "P"),
    ("WEBP", "RGBA"), ("AVIF", "RGBA"), ("TIFF", "F"), ("JPEG2000", "RGB"), ("JPEG", "RGB"),
]  # fmt: skip


def python(script, *arguments):
    """What a process of its own prints; what it frees of memory goes back at once."""
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def peaks(*cases):
    """Bytes that decoding takes at its highest moment, for each (format, mode, side, threads)."""
    return json.loads(python(TAKEN + DECODE, json.dumps(cases)))


def test_no_format_takes_more_than_its_weight_says(subtests):
    # The formats that aren't decoded in parts take as much for a pixel of a smaller image.
    sides = [2000 if kind in WEIGHTS else 4000 for kind, _ in FORMATS]
    found = peaks(*((*one, side, 1) for one, side in zip(FORMATS, sides, strict=True)))
    for (kind, mode), side, taken in zip(FORMATS, sides, found, strict=True):
        with subtests.test(kind=kind, mode=mode):
            # The bytes that come out are nearly as large as what was decoded for them.
            assert taken > side**2 / 8
            # Beside the decoder, the whole image's bytes and a half as large image of it.
            assert taken < (4 * WEIGHTS.get(kind, 1) + 4 + 2) * side**2


def test_threads_that_decode_large_images_take_the_memory_of_one():
    # More pixels than the threads of a process share.
    side = 9000
    [taken] = peaks(("PNG", "RGBA", side, 3))
    assert 3 * side**2 < taken < (4 + 4 + 2) * side**2


PREPARE = """
from PIL import Image
from retrieval.encoding.encoders import load_encoder

prepare = load_encoder("demo").images.prepare
prepare(Image.new("RGB", (200, 100)))
print(taken(lambda: prepare(Image.new("RGB", (20_000, 1)))))
"""


def test_a_thin_image_is_not_made_a_hundred_times_as_long_for_a_model():
    # 96 × 1,920,000 pixels of which the model sees 96 × 96.
    assert int(python(TAKEN + PREPARE)) < 96 * 1_920_000
