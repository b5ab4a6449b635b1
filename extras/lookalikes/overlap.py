"""Which images lie nearer to another species than to their own, and which species are linked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def taken_for(vectors: Floats, own: int, sums: Floats, counts: NDArray[np.int64]) -> list[int]:
    """For each of a species' unit vectors (n, d) the species whose center is nearest, own first
    among equals.

    `sums` (s, d) and `counts` (s,) are of each species' vectors, these among them; a center is the
    sum made unit length. A vector is left out of its own species' center, so that it isn't near to
    itself; where nothing is left then, its own species is its answer.
    """
    if counts[own] < 2:
        return [own] * len(vectors)
    lengths = np.linalg.norm(sums, axis=1)
    near = vectors @ (sums / np.maximum(lengths, 1e-12)[:, None]).T
    rest = sums[own] - vectors
    near[:, own] = np.einsum("nd,nd->n", vectors, rest) / np.maximum(
        np.linalg.norm(rest, axis=1), 1e-12
    )
    best = near.argmax(axis=1)
    best[near[:, own] >= near.max(axis=1)] = own
    return [int(species) for species in best]


def strongest_links(confusions: dict[tuple[int, int], int]) -> list[tuple[int, int]]:
    """Each species with the one that it is confused with most often, either way; ties by id.
    `confusions`: (species, taken for) -> count. No chains of weak links grow that way.
    """
    both: dict[int, dict[int, int]] = {}
    for (species, other), count in confusions.items():
        for first, second in ((species, other), (other, species)):
            both.setdefault(first, {}).setdefault(second, 0)
            both[first][second] += count
    return sorted(
        (species, min(others, key=lambda other: (-others[other], other)))
        for species, others in both.items()
    )
