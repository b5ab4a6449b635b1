"""The inner product of half-precision vectors, bit for bit as pgvector computes it.

pgvector 0.8 (`HalfvecInnerProductF16c` in src/halfutils.c) takes eight columns at a time: eight
sums in single precision, one a lane, then the lanes pairwise, (0+4, 1+5, 2+6, 3+7), then
(0+2, 1+3), then both; columns behind the last eight are added one by one. `kernel` does
the same, at the speed at which memory is read.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.cores import cores

LANES: Final = 8
Halves = NDArray[np.float16]
Singles = NDArray[np.float32]
Rows = NDArray[np.int64]

# Rows that a thread takes at a time.
_SHARE: Final = 2048
_LONGEST: Final = 1.01  # the length of a stored vector, by the table's constraint
_HALF_UNIT: Final = 2.0**-24  # of a number in single precision, in its last place


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


def margin(query: Query) -> float:
    """How far apart the scores of one vector can be where the sums are taken in another order.

    A sum of n terms in any order is off by at most n roundings of the sum of their magnitudes
    (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2), which is at most the
    product of the lengths; both sums are off.
    """
    terms = len(query.halves) + LANES
    return 2 * terms * _HALF_UNIT * _LONGEST * query.length * 1.01


def scores_of_rows(vectors: Halves, query: Query, rows: Rows | None = None) -> Singles:
    """Scores (n,) of vectors (n, width), or of these rows (n,) of more, as pgvector computes them;
    never a negative zero.
    """
    return begin_scores(vectors, query, rows)()


def begin_scores(
    vectors: Halves, query: Query, rows: Rows | None = None, *, ahead: bool = False
) -> Callable[[], Singles]:
    """What gives the scores of `scores_of_rows`; `ahead` has other threads compute them before they
    are asked for.
    """
    places = None if rows is None else np.array(rows, np.int64)
    _check(vectors, query, places)
    count = len(vectors) if places is None else len(places)
    scores = np.empty(count, dtype=np.float32)
    singles = query.halves.astype(np.float32)
    first, width = vectors.ctypes.data, vectors.shape[1]
    asked, out, dimension = singles.ctypes.data, scores.ctypes.data, query.dimension
    kernel = _kernel()

    def work(start: int, stop: int) -> None:
        if places is None:
            row, number = first + 2 * start * width, stop - start
            kernel.one(row, width, number, asked, dimension, out + 4 * start)
        else:
            kernel.some(first, width, places[start:stop], asked, dimension, out + 4 * start)

    shared = _Shared(work, count, held=(vectors, singles, scores), ahead=ahead)

    def finished() -> Singles:
        shared.finish()
        return scores

    return finished


class ScoresOfMany:
    """Scores of blocks of at most `most` vectors for several queries of one dimension.

    Each block's scores lie where the last one's were: memory that is given back and taken again
    for each block would fall to pieces.
    """

    def __init__(self, queries: Sequence[Query], most: int) -> None:
        self._tile = _kernel().TILE
        self._queries = queries
        filled = -(-len(queries) // self._tile) * self._tile
        self._singles = np.zeros((filled, len(queries[0].halves)), dtype=np.float32)
        for single, query in zip(self._singles, queries, strict=False):
            single[:] = query.halves
        self._scores = np.empty((filled, most), dtype=np.float32)

    def __call__(self, vectors: Halves) -> Singles:
        """Scores (q, n) of vectors (n, width), until the next call; bit for bit as each query's
        own.
        """
        _check(vectors, self._queries[0], None)
        filled, most = self._scores.shape
        if len(vectors) > most:
            raise ValueError("More vectors than there is room for.")
        first, width = vectors.ctypes.data, vectors.shape[1]
        asked, out = self._singles.ctypes.data, self._scores.ctypes.data
        dimension, kernel = self._queries[0].dimension, _kernel()

        def work(start: int, stop: int) -> None:
            row, number, target = first + 2 * start * width, stop - start, out + 4 * start
            kernel.many(row, width, number, asked, filled, dimension, target, most)

        _Shared(work, len(vectors), held=(vectors, self)).finish()
        return self._scores[: len(self._queries), : len(vectors)]


def _check(vectors: Halves, query: Query, rows: Rows | None) -> None:
    """Raise ValueError for what would be read outside of its memory."""
    if vectors.dtype != np.float16 or not vectors.flags.c_contiguous:
        raise ValueError("Vectors in half precision that lie together are needed.")
    if vectors.shape[1] != len(query.halves):
        raise ValueError("The vectors are of another width than the query.")
    if rows is not None and len(rows) and (rows.min() < 0 or rows.max() >= len(vectors)):
        raise ValueError("There is no such row.")


class _Shared:
    """`work` on a number of rows, by as many threads as there are cores: each takes the next share
    when it has done one, so that none waits for one that another process held up. What the work
    knows by its address alone is `held` until then.
    """

    def __init__(
        self,
        work: Callable[[int, int], None],
        count: int,
        *,
        held: tuple[object, ...],
        ahead: bool = False,
    ) -> None:
        self._work, self._count, self._held = work, count, held
        self._starts = iter(range(0, count, _SHARE))
        helpers = min(-(-count // _SHARE), _threads()) - (not ahead)
        pool = _pool(os.getpid()) if helpers > 0 else None
        self._helping = [pool.submit(self._help) for _ in range(helpers)] if pool else []

    def _help(self) -> None:
        for start in self._starts:
            self._work(start, min(start + _SHARE, self._count))

    def finish(self) -> None:
        """Return when all is done."""
        self._help()
        for helper in self._helping:
            helper.result()


def warm_up() -> None:
    """Have the loops compiled in a thread, so that a process need not wait when it first ranks."""
    threading.Thread(target=_kernel, daemon=True).start()


def _kernel() -> ModuleType:
    """Compiled when a process first ranks."""
    from retrieval.ranking import kernel

    return kernel


def _threads() -> int:
    return min(8, cores())


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of this process; a forked one has none of its parent's."""
    return ThreadPoolExecutor(_threads(), thread_name_prefix=f"scores-{process}")
