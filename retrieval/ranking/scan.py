"""Scores of half-precision vectors, and which rows of a matrix are the first k by them.

The score of two vectors is their inner product in double precision. A half is a multiple of 2⁻²⁴
and the vectors are about of unit length, so every partial sum fits the 53 bits of a double: nothing
is rounded, whatever the order of addition, the library or the processor. A product that adds in
single precision only chooses the rows that may be among the first k, by a bound on its error: for
one query NumKong's, at the speed at which memory is read; for many BLAS's, of rows that NumKong has
widened. (NumPy widens halves forty times more slowly, and PyTorch is too large for a web process.)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Final

import numkong
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from core.cores import cores

Halves = NDArray[np.float16]
Singles = NDArray[np.float32]
Scores = NDArray[np.float64]
Rows = NDArray[np.int64]
ScoredImage = tuple[int, float]
Product = Callable[[Halves, Singles], None]

LONGEST_QUERY: Final = 8.0
_LONGEST_STORED: Final = 1.01  # by the table's constraint
# Rows that a thread takes at a time: few, so that no thread waits long for another.
PIECE_ROWS: Final = 2048
# Rows between two synchronizations of the threads.
CHUNK_ROWS: Final = 1 << 17
_CHUNK_SCORES: Final = 1 << 24
EXACT_ROWS: Final = 256  # so that they stay in a core's own cache

_limiting = threading.Lock()


class ImpreciseProduct(Exception):
    """The error of this processor's fast product exceeds its bound."""


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """Some rows of a matrix that lie together."""

    first: int
    """The number of its first row in the whole matrix."""
    image_ids: Rows
    """(n,), ascending."""
    moments: Rows
    """(n,) when each was stored, as microseconds from the year 2000."""
    vectors: Halves
    """(n, d)"""


@dataclass(frozen=True, eq=False, slots=True)
class RowFilter:
    """Which rows may be in a ranking."""

    without: Rows
    """Rows that may not, ascending."""
    within: Rows | None = None
    """Only these rows, ascending; None for all."""
    until: int | None = None
    """Only what was stored by this moment."""
    behind: tuple[float, int] | None = None
    """Only what is ranked behind this (score, image id)."""


def query_of(vector: Sequence[float], dimension: int) -> Halves:
    """A vector rounded as PostgreSQL's cast to halfvec does: to single precision, then to half.

    Raises ValueError unless it has so many numbers, finite ones, and is shorter than LONGEST_QUERY.
    """
    with np.errstate(over="ignore"):
        halves = np.asarray(vector, np.float64).astype(np.float32).astype(np.float16)
    if halves.shape != (dimension,) or not np.linalg.norm(halves.astype(float)) < LONGEST_QUERY:
        raise ValueError(f"A vector of {dimension} finite numbers, about of unit length, is needed")
    return halves


def error_bound(query: Halves) -> float:
    """How far a sum in single precision can be from the score of a stored vector.

    Products of halves are exact in single precision. A sum of n terms in any order is off by at
    most n / (1 - n 2⁻²⁴) · 2⁻²⁴ of the sum of their magnitudes (Higham, Accuracy and Stability of
    Numerical Algorithms, section 4.2), which is at most the product of the lengths.
    """
    length = float(np.linalg.norm(query.astype(np.float64)))
    return (len(query) + 8) * 2.0**-24 * _LONGEST_STORED * length * 1.01


def exact_scores(vectors: Halves, query: Halves) -> Scores:
    """The scores (n,) of vectors (n, d) for a query (d,); never a negative zero."""
    if not len(vectors):
        return np.empty(0, np.float64)
    wide, query_wide = widened(vectors), query.astype(np.float32)
    # NumKong adds products of singles in double precision.
    products = numkong.cdist(wide, query_wide[None], "dot", out_dtype="float64")
    scores: Scores = np.asarray(products)[:, 0] + 0.0
    return scores


def widened(vectors: Halves) -> Singles:
    """The vectors (n, d) in single precision."""
    wide: Singles = np.asarray(numkong.Tensor(np.ascontiguousarray(vectors)).astype("float32"))
    return wide


def scores_at(parts: Sequence[Part], query: Halves, rows: Rows) -> Scores:
    """The scores (n,) of rows, ascending."""
    scores = [np.empty(0)]
    # One buffer for all: memory taken anew for each block goes back to the system in between, and
    # its page faults cost more than the scores (half the time of a list in `bench.ranking`).
    buffer = np.empty((min(EXACT_ROWS, len(rows)), len(query)), np.float16)
    for part, own in _by_part(parts, rows):
        for start in range(0, len(own), EXACT_ROWS):
            block = own[start : start + EXACT_ROWS]
            vectors = np.take(part.vectors, block, axis=0, out=buffer[: len(block)], mode="clip")
            scores.append(exact_scores(vectors, query))
    return np.concatenate(scores)


def rank_rows(
    parts: Sequence[Part], queries: Halves, *, limit: int, row_filter: RowFilter
) -> list[list[ScoredImage]]:
    """The first `limit` (image id, score) for each of the queries (q, d), ties by image id.

    Raises ImpreciseProduct.
    """
    with ThreadPoolExecutor(min(8, cores())) as pool:
        with _blas_in_one_thread() if len(queries) > 1 else nullcontext():
            chosen = _choose(pool, parts, queries, limit, row_filter)

        def rank(number: int) -> list[ScoredImage]:
            rows, fast = chosen[number].result()
            scores = scores_at(parts, queries[number], rows)
            if not (np.abs(scores - fast) <= error_bound(queries[number])).all():
                raise ImpreciseProduct
            return sort_by_score(ids_of(parts, rows), scores, limit=limit, behind=row_filter.behind)

        return list(pool.map(rank, range(len(queries))))


def sort_by_score(
    image_ids: Rows, scores: Scores, *, limit: int | None, behind: tuple[float, int] | None = None
) -> list[ScoredImage]:
    """The first `limit` (image id, score) by falling score, ties by image id, behind a place."""
    if behind is not None:
        score, image_id = behind
        behind_it = (scores < score) | ((scores == score) & (image_ids > image_id))
        image_ids, scores = image_ids[behind_it], scores[behind_it]
    order = np.lexsort((image_ids, -scores))[:limit]
    return list(zip(image_ids[order].tolist(), scores[order].tolist(), strict=True))


def ids_of(parts: Sequence[Part], rows: Rows) -> Rows:
    """The image ids (n,) of rows, ascending."""
    pieces = (part.image_ids[own] for part, own in _by_part(parts, rows))
    return np.concatenate([np.empty(0, np.int64), *pieces])


def moments_of(parts: Sequence[Part], rows: Rows) -> Rows:
    """When rows, ascending, were stored (n,), as microseconds from the year 2000."""
    pieces = (part.moments[own] for part, own in _by_part(parts, rows))
    return np.concatenate([np.empty(0, np.int64), *pieces])


def vectors_of(parts: Sequence[Part], rows: Rows) -> Halves:
    """The vectors (n, d) of at least one row, ascending; a copy."""
    return np.concatenate([part.vectors[own] for part, own in _by_part(parts, rows)])


def rows_of(parts: Sequence[Part], image_ids: Rows) -> Rows:
    """The rows of images, ascending; an image that was stored again has several."""
    wanted = np.unique(image_ids)
    rows = [np.empty(0, np.int64)]
    for part in parts:
        at = np.searchsorted(part.image_ids, wanted)
        inside = at < len(part.image_ids)
        at, ids = at[inside], wanted[inside]
        rows.append(part.first + at[part.image_ids[at] == ids])
    return np.concatenate(rows)


class _Candidates:
    """The rows that may be among the first `limit` of a query, of those that were added."""

    def __init__(self, bound: float, limit: int, behind: tuple[float, int] | None) -> None:
        self._bound, self._limit, self._room = bound, limit, 2 * limit
        self._ceiling = np.inf if behind is None else behind[0]
        # Rows that may not be in the ranking have a score of minus infinity.
        self._floor = np.finfo(np.float32).min
        self._added = [(np.empty(0, np.int64), np.empty(0, np.float32))]

    def add(self, scores: Singles, *, own: slice | Rows, first: int) -> None:
        """Take in the fast scores (n,) of a part's own rows; its first is the matrix's `first`."""
        if len(self._added) == 1 and self._ceiling == np.inf:
            # Most of the first rows would be taken in to be cut away at once.
            self._raise_floor(scores)
        hits = np.flatnonzero(scores >= self._floor)
        chosen = scores[hits]
        if self._ceiling != np.inf:
            near = chosen <= self._ceiling + self._bound
            hits, chosen = hits[near], chosen[near]
        rows = hits + own.start if isinstance(own, slice) else own[hits]
        self._added.append((rows + first, chosen))
        if sum(len(rows) for rows, _ in self._added) > self._room:
            rows, _ = self.result()
            # Where many are as good as the last place, more room keeps it from being cut each time.
            self._room = max(self._room, 2 * len(rows))

    def _raise_floor(self, scores: Singles) -> None:
        """Raise the least score by rows that can be in the ranking, with these fast scores (n,)."""
        if len(scores) >= self._limit:
            last = len(scores) - self._limit
            floor = np.float32(np.partition(scores, last)[last] - 2 * self._bound)
            self._floor = max(self._floor, np.nextafter(floor, np.float32(-np.inf)))

    def result(self) -> tuple[Rows, Singles]:
        """The rows (n,), in the order in which they were added, and their fast scores (n,)."""
        rows, scores = map(np.concatenate, zip(*self._added, strict=True))
        # Rows that may come before the place behind which the ranking goes on don't count.
        self._raise_floor(scores[scores < self._ceiling - self._bound])
        kept = scores >= self._floor
        self._added = [(rows[kept], scores[kept])]
        return self._added[0]


def _choose(
    pool: ThreadPoolExecutor,
    parts: Sequence[Part],
    queries: Halves,
    limit: int,
    row_filter: RowFilter,
) -> list[_Candidates]:
    """For each query the rows that may be in its ranking."""
    candidates = [_Candidates(error_bound(query), limit, row_filter.behind) for query in queries]
    product = fast_product(queries)
    size = max(1, min(CHUNK_ROWS, _CHUNK_SCORES // len(queries)))
    for part, own in _chunks(parts, row_filter, size):
        count = own.stop - own.start if isinstance(own, slice) else len(own)
        scores = np.empty((len(queries), count), np.float32)

        list(pool.map(partial(_fill, product, part, own, scores), range(0, count, PIECE_ROWS)))
        if isinstance(own, slice):
            first, last = part.first + own.start, part.first + own.stop
            out = row_filter.without[slice(*np.searchsorted(row_filter.without, [first, last]))]
            scores[:, out - first] = -np.inf
        if row_filter.until is not None:
            scores[:, part.moments[own] > row_filter.until] = -np.inf
        list(pool.map(partial(_Candidates.add, own=own, first=part.first), candidates, scores))
    return candidates


def _fill(product: Product, part: Part, own: slice | Rows, scores: Singles, start: int) -> None:
    """Put the fast scores of PIECE_ROWS of a part's own rows in their place."""
    stop = min(start + PIECE_ROWS, scores.shape[1])
    if isinstance(own, slice):
        vectors = part.vectors[own.start + start : own.start + stop]
    else:
        vectors = part.vectors[own[start:stop]]
    product(vectors, scores[:, start:stop])


def fast_product(queries: Halves) -> Product:
    """A function that puts the fast scores of vectors (n, d) for the queries (q, d) into an array
    (q, n).
    """
    wide = queries.astype(np.float32)

    def of_many(vectors: Halves, scores: Singles) -> None:
        np.matmul(wide, widened(vectors).T, out=scores)

    def of_one(vectors: Halves, scores: Singles) -> None:
        scores[:] = np.asarray(numkong.cdist(vectors, queries, "dot")).T

    return of_one if len(queries) == 1 else of_many


@contextmanager
def _blas_in_one_thread() -> Iterator[None]:
    """Let BLAS multiply in the threads that call it, of which there is one a core (in 17 % less
    time than by its own threads, 250 queries at 200,000 images). The limit is the process's, so one
    block holds it at a time.
    """
    with _limiting, threadpool_limits(1, user_api="blas"):
        yield


def _chunks(
    parts: Sequence[Part], row_filter: RowFilter, size: int
) -> Iterator[tuple[Part, slice | Rows]]:
    """Yield parts with the rows to score together, numbered within the part."""
    if row_filter.within is None:
        for part in parts:
            for start in range(0, len(part.image_ids), size):
                yield part, slice(start, min(start + size, len(part.image_ids)))
        return
    rows = np.setdiff1d(row_filter.within, row_filter.without, assume_unique=True)
    for part, own in _by_part(parts, rows):
        for start in range(0, len(own), size):
            yield part, own[start : start + size]


def _by_part(parts: Sequence[Part], rows: Rows) -> Iterator[tuple[Part, Rows]]:
    """Yield each part that has some of the rows, with their numbers in it."""
    for part in parts:
        first, last = np.searchsorted(rows, [part.first, part.first + len(part.image_ids)])
        if last > first:
            yield part, rows[first:last] - part.first
