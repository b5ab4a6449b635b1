"""Which images show nearly the same: pairs by embeddings, told apart by perceptual hashes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from PIL import Image

#: Rows whose products with all others are held at once.
_BLOCK = 2048


def like_pairs(vectors: NDArray[np.float16], least: float) -> Iterator[tuple[int, int]]:
    """The pairs (i, j), i < j, of the unit vectors (n, d) whose inner product, in single precision,
    is at least `least`.
    """
    rows = vectors.astype(np.float32)
    for start in range(0, len(rows), _BLOCK):
        products = rows[start : start + _BLOCK] @ rows[start:].T
        for i, j in zip(*np.nonzero(np.triu(products >= least, k=1)), strict=True):
            yield start + int(i), start + int(j)


def perceptual_hash(image: Image.Image) -> int:
    """64 bits of an image that resizing and compressing change little: which of the lowest 8 × 8
    cosines of its 32 × 32 grays are above their median (Zauner 2010, "Implementation and
    benchmarking of perceptual image hash functions", 3.2.1).
    """
    from scipy.fft import dctn

    grays = np.asarray(image.convert("L").resize((32, 32), Image.Resampling.LANCZOS), float)
    cosines = dctn(grays)[:8, :8].ravel()
    return int.from_bytes(np.packbits(cosines > np.median(cosines)).tobytes())


def bits_apart(first: int, second: int) -> int:
    """In how many bits two hashes differ."""
    return (first ^ second).bit_count()
