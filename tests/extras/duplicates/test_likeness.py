"""What vectors and hashes tell of near-duplicates."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image as PillowImage

from extras.duplicates.likeness import bits_apart, like_pairs, perceptual_hash
from tests.retrieval.making import scene

pytestmark = pytest.mark.pure


def test_a_hash_survives_resizing_and_tells_pictures_apart() -> None:
    hashes = [perceptual_hash(scene(seed)) for seed in range(20)]
    for seed, whole in enumerate(hashes):
        data = io.BytesIO()
        scene(seed).resize((90, 120)).save(data, "JPEG", quality=40)
        assert bits_apart(whole, perceptual_hash(PillowImage.open(data))) <= 6
    apart = [bits_apart(a, b) for n, a in enumerate(hashes) for b in hashes[:n]]
    assert min(apart) > 8
    assert bits_apart(0b1011, 0b0110) == 3


def test_pairs() -> None:
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(60, 8))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    products = vectors.astype(np.float32) @ vectors.astype(np.float32).T
    expected = [(i, j) for i in range(60) for j in range(i + 1, 60) if products[i, j] >= 0.5]
    assert sorted(like_pairs(vectors, 0.5)) == expected
