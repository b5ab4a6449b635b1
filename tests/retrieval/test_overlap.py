"""What vectors and hashes tell of each other: look-alikes, near-duplicates, and their groups."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image as PillowImage

from retrieval.duplicates.likeness import bits_apart, components, like_pairs, perceptual_hash
from retrieval.lookalikes.overlap import strongest_links, taken_for
from tests.retrieval.making import scene

pytestmark = pytest.mark.pure


def test_links_and_centers() -> None:
    assert strongest_links({(1, 2): 3, (2, 1): 1, (2, 3): 5, (4, 3): 1}) == [
        (1, 2), (2, 3), (3, 2), (4, 3)
    ]  # fmt: skip
    at = np.deg2rad([0, 10, 50, 60, 62])
    vectors = np.stack([np.cos(at), np.sin(at)], axis=1).astype(np.float32)
    sums = np.stack([vectors[:3].sum(axis=0), vectors[3:].sum(axis=0)])
    # The third of the first species lies nearer to the second; without itself its own center is 5°.
    assert taken_for(vectors[:3], 0, sums, np.array([3, 2])) == [0, 0, 1]
    assert taken_for(vectors[3:], 1, sums, np.array([3, 2])) == [1, 1]
    assert taken_for(vectors[:1], 0, sums, np.array([1, 2])) == [0]


def test_a_hash_survives_resizing_and_tells_pictures_apart() -> None:
    hashes = [perceptual_hash(scene(seed)) for seed in range(20)]
    for seed, whole in enumerate(hashes):
        data = io.BytesIO()
        scene(seed).resize((90, 120)).save(data, "JPEG", quality=40)
        assert bits_apart(whole, perceptual_hash(PillowImage.open(data))) <= 6
    apart = [bits_apart(a, b) for n, a in enumerate(hashes) for b in hashes[:n]]
    assert min(apart) > 8
    assert bits_apart(0b1011, 0b0110) == 3


def test_pairs_and_groups() -> None:
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(60, 8))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    products = vectors.astype(np.float32) @ vectors.astype(np.float32).T
    expected = [(i, j) for i in range(60) for j in range(i + 1, 60) if products[i, j] >= 0.5]
    assert sorted(like_pairs(vectors, 0.5)) == expected
    assert components(6, [(0, 1), (1, 4), (2, 5)]) == [[0, 1, 4], [2, 5]]
    assert components(3, []) == []
