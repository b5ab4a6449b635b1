"""Lists that the methods of the benchmark of ranking left, compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

List = tuple[NDArray[np.int64], NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two methods' lists agree, over all that both made."""

    images: float
    """The share (0..1) of one's images that the other has too."""
    ranks: float
    """The share (0..1) of ranks at which both have the same image."""


def identical(folder: Path, one: str, other: str) -> bool:
    """Whether the lists of two methods are the same bit for bit, images and scores, wherever both
    made one; False where they share none. `one` and `other` begin their files' names.
    """
    pairs = list(_pairs(folder, one, other))
    return bool(pairs) and all(
        ours[0].tobytes() == theirs[0].tobytes() and ours[1].tobytes() == theirs[1].tobytes()
        for ours, theirs in pairs
    )


def agreement(folder: Path, one: str, other: str) -> Agreement | None:
    """How far two methods agree; None where they share no list."""
    images, ranks = [], []
    for (left, _), (right, _) in _pairs(folder, one, other):
        depth = max(len(left), len(right), 1)
        images.append(len(np.intersect1d(left, right)) / depth)
        shorter = min(len(left), len(right))
        ranks.append(int((left[:shorter] == right[:shorter]).sum()) / depth)
    if not images:
        return None
    return Agreement(float(np.mean(images)), float(np.mean(ranks)))


def _pairs(folder: Path, one: str, other: str) -> Iterator[tuple[List, List]]:
    for path in sorted(folder.glob(f"{one}*.npz")):
        counterpart = path.with_name(other + path.name.removeprefix(one))
        if counterpart.is_file():
            yield _read(path), _read(counterpart)


def _read(path: Path) -> List:
    with np.load(path) as stored:
        return stored["image_ids"], stored["scores"]
