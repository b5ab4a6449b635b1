"""The inner product of half-precision vectors, bit for bit as pgvector computes it, and fast ones
that are near it.

pgvector 0.8 (`HalfvecInnerProductF16c` in src/halfutils.c) takes eight columns at a time: eight
sums in single precision, one a lane, then the lanes pairwise, (0+4, 1+5, 2+6, 3+7), then
(0+2, 1+3), then both; columns behind the last eight are added one by one. The product of two halves
is exact in single precision, so that a fused multiply and add rounds as two steps do.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LANES: Final = 8
Halves = NDArray[np.float16]
Singles = NDArray[np.float32]
Rows = NDArray[np.int64]

# Rows of which the products lie in a core's own cache.
_BLOCK: Final = 64
# So many numbers torch converts in the thread that asks.
_ALONE: Final = 32_767
# Fewer rows than this are no work for a second thread.
_SHARE: Final = 1024
_LONGEST: Final = 1.01  # the length of a stored vector, by the table's constraint
_HALF, _SINGLE = 2.0**-11, 2.0**-24  # half a unit in the last place, relative


def padded(dimension: int) -> int:
    """The columns that a row of a matrix has: whole groups of eight, the last filled with zeros."""
    return -(-dimension // LANES) * LANES


@dataclass(frozen=True, eq=False, slots=True)
class Query:
    """A vector to rank by."""

    dimension: int
    halves: Halves
    """(padded(dimension),)"""
    length: float

    @classmethod
    def of(cls, vector: Sequence[float]) -> Query:
        """Round as PostgreSQL's cast to halfvec does: to single precision, then to half.

        Raises ValueError for what is no vector of finite halves near unit length.
        """
        with np.errstate(over="ignore"):
            rounded = np.asarray(vector, dtype=np.float64).astype(np.float32).astype(np.float16)
        length = float(np.linalg.norm(rounded.astype(np.float64))) if rounded.ndim == 1 else np.nan
        if not 0 < length < 2:
            raise ValueError("A vector of finite numbers and about unit length is needed.")
        halves = np.zeros(padded(len(rounded)), dtype=np.float16)
        halves[: len(rounded)] = rounded
        return cls(len(rounded), halves, length)

    def text(self) -> str:
        """As PostgreSQL reads it; five digits tell any half from its neighbours."""
        values = self.halves[: self.dimension].tolist()
        return "[" + ",".join(map("{:.5g}".format, values)) + "]"


@dataclass(frozen=True, slots=True)
class Error:
    """How far an approximate score can be from the exact one: `fixed` + `relative` * |score|."""

    fixed: float
    relative: float

    def of(self, scores: Any) -> Any:
        """The bound for approximate scores (n,)."""
        return self.fixed + self.relative * np.abs(scores)

    def floor(self, approximate: float) -> float:
        """The least approximate score of which the exact one can reach the exact score that belongs
        to `approximate`.
        """
        least = approximate - self.of(approximate) - self.fixed
        return float(least / (1 + self.relative if least >= 0 else 1 - self.relative))


def half_error(query: Query) -> Error:
    """The bound for `half_products`: sums in single precision in any order, then rounded to half.

    A sum of n terms in any order is off by at most n roundings of the sum of their magnitudes
    (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2), which is at most the
    product of the lengths. The exact score is such a sum too. 2^-24 more for the smallest halves.
    """
    return Error(2 * _summing(query) + 2.0**-24, _HALF * 1.001)


def single_error(query: Query) -> Error:
    """The bound for products in single precision, summed in any order."""
    return Error(2 * _summing(query), 0.0)


def _summing(query: Query) -> float:
    return (len(query.halves) + LANES) * _SINGLE * _LONGEST * query.length * 1.01


def half_products(vectors: Halves, query: Query) -> Singles:
    """Scores (n,) of vectors (n, width) within `half_error`, as fast as memory can be read."""
    import torch

    scores = torch.mv(torch.from_numpy(vectors), torch.from_numpy(query.halves))
    return scores.float().numpy()


class SingleProducts:
    """Scores of blocks of at most `most` vectors for queries (q, width), within `single_error`.

    Each block's scores lie where the last one's were: memory that is given back and taken again
    for each block would fall to pieces.
    """

    def __init__(self, queries: Halves, most: int) -> None:
        import torch

        self._queries = torch.from_numpy(queries).float()
        self._wide = torch.empty(most * queries.shape[1])
        self._scores = torch.empty(most * len(queries))

    def __call__(self, vectors: Halves) -> Singles:
        """Scores (q, n) of vectors (n, width), until the next call."""
        import torch

        wide = self._wide[: vectors.size].view(vectors.shape)
        wide.copy_(torch.from_numpy(vectors))
        shape = (len(self._queries), len(vectors))
        scores = self._scores[: shape[0] * shape[1]].view(shape)
        torch.mm(self._queries, wide.T, out=scores)
        return scores.numpy()


def exact_products(vectors: Halves, query: Query, rows: Rows | None = None) -> Singles:
    """Scores (n,) of vectors (m, width), or of these rows (n,) of them, as pgvector computes them;
    never a negative zero.
    """
    count = len(vectors) if rows is None else len(rows)
    scores = np.empty(count, dtype=np.float32)
    groups = vectors.view(np.complex128)  # eight halves each: numpy gathers and turns them as one
    tile = _tile(query)

    def work(first: int, last: int) -> None:
        singles = np.empty_like(tile)
        for start in range(first, last, _BLOCK):
            stop = min(start + _BLOCK, last)
            block = groups[start:stop] if rows is None else groups[rows[start:stop]]
            scores[start:stop] = _lanes(block, query, tile, singles)

    if count < 2 * _SHARE or _threads() == 1:
        work(0, count)
    else:
        share = -(-count // _threads())
        done = [
            _pool(os.getpid()).submit(work, first, min(first + share, count))
            for first in range(0, count, share)
        ]
        for future in done:
            future.result()
    scores += 0.0
    return scores


def _tile(query: Query) -> Singles:
    """The query (groups, _BLOCK * 8), once for each row of a block."""
    groups = query.halves.astype(np.float32).reshape(-1, 1, LANES)
    return np.ascontiguousarray(
        np.broadcast_to(groups, (len(groups), _BLOCK, LANES)).reshape(len(groups), -1)
    )


def _lanes(block: NDArray[np.complex128], query: Query, tile: Singles, singles: Singles) -> Singles:
    """Exact scores (n,) of rows as groups (n, groups); `singles` is room to work in."""
    count, whole = len(block), query.dimension // LANES
    turned = np.ascontiguousarray(block.T).view(np.float16)
    if count < _BLOCK:
        tile, singles = tile[:, : count * LANES], np.empty(turned.shape, np.float32)
    _widen(turned, singles)
    # Row after row of (groups, n * 8) is added to the sums: each lane in the order of its columns.
    lanes = np.einsum("gm,gm->m", singles[:whole], tile[:whole]).reshape(count, LANES)
    four = lanes[:, :4] + lanes[:, 4:]
    two = four[:, :2] + four[:, 2:]
    scores: Singles = two[:, 0] + two[:, 1]
    for column in range(query.dimension % LANES):
        scores += singles[whole, column::LANES] * tile[whole, column::LANES]
    return scores


def _widen(halves: Halves, singles: Singles) -> None:
    """Copy halves (m, n) to single precision; piece by piece, so that torch starts no threads
    within one of ours. numpy takes forty times as long.
    """
    import torch

    source, target = torch.from_numpy(halves), torch.from_numpy(singles)
    rows = max(1, _ALONE // halves.shape[1])
    for start in range(0, len(halves), rows):
        target[start : start + rows].copy_(source[start : start + rows])


def _threads() -> int:
    return min(8, len(os.sched_getaffinity(0)))


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of this process; a forked one has none of its parent's."""
    return ThreadPoolExecutor(_threads(), thread_name_prefix=f"exact-{process}")
