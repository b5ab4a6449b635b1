"""What decoding takes of memory, seen from outside: the peak of a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from retrieval.images.decoding import WEIGHTS
from tests import ROOT

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
from retrieval.images import decoding
from retrieval.images.decoding import (
    DISPLAY_SIDE, display_bytes, jpeg_bytes, open_image, thumbnail_bytes,
)

decoding.decoded_at_once = decoding.Budget(10_000_000)

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


def peaks(*cases: tuple[str, str, int, int]) -> list[int]:
    """Bytes that decoding takes at its highest moment, for each (format, mode, side, threads), in
    a process that gives back at once what it frees.
    """
    done = subprocess.run(
        [sys.executable, "-c", TAKEN + DECODE, json.dumps(cases)],
        cwd=ROOT,
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072"},
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[int] = json.loads(done.stdout)
    return found


def test_no_format_takes_more_than_its_weight_says_and_threads_no_more_than_one(
    subtests: Any,
) -> None:
    # The formats that aren't decoded in parts take as much for a pixel of a smaller image.
    sides = [2000 if kind in WEIGHTS else 4000 for kind, _ in FORMATS]
    # More pixels than the threads of a process share.
    large = 4000
    *found, shared = peaks(
        *((*one, side, 1) for one, side in zip(FORMATS, sides, strict=True)),
        ("PNG", "RGBA", large, 3),
    )
    assert 3 * large**2 < shared < (4 + 4 + 2) * large**2
    for (kind, mode), side, taken in zip(FORMATS, sides, found, strict=True):
        with subtests.test(kind=kind, mode=mode):
            # The bytes that come out are nearly as large as what was decoded for them.
            assert taken > side**2 / 8
            # Beside the decoder, the whole image's bytes and a half as large image of it.
            assert taken < (4 * WEIGHTS.get(kind, 1) + 4 + 2) * side**2
