"""What vectors tell of look-alikes, and their groups."""

from __future__ import annotations

import numpy as np
import pytest

from core.graphs import components
from extras.lookalikes.overlap import strongest_links, taken_for

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


def test_groups_of_what_is_linked() -> None:
    assert components(6, [(0, 1), (1, 4), (2, 5)]) == [[0, 1, 4], [2, 5]]
    assert components(3, []) == []
