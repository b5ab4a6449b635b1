"""The rows of a matrix that a ranking needs, by their scores.

Where the database's scores may differ from these by a margin, a row is left out only if its score
there cannot reach that of the last place. Memory doesn't grow with the matrix: scores are looked at
part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval.ranking.arithmetic import (
    Halves,
    Query,
    Rows,
    ScoresOfMany,
    Singles,
    begin_scores,
    scores_of_rows,
)

# Rows whose scores are looked at together.
_PART: Final = 524_288
_PART_OF_MANY: Final = 8192
# Queries that go through the matrix together: their scores of a part take 8 MB.
QUERIES_AT_ONCE: Final = 256


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """Some rows of a matrix that lie together."""

    first: int
    """The number of its first row in the whole matrix."""
    image_ids: Rows
    """(n,), ascending."""
    moments: NDArray[np.int64]
    """(n,) when each was stored, as microseconds from the year 2000."""
    vectors: Halves
    """(n, width)"""


@dataclass(frozen=True, eq=False, slots=True)
class Eligible:
    """Which rows may be in a ranking."""

    without: Rows
    """Rows that may not, ascending."""
    until: int | None = None
    """Only what was stored by this moment."""
    behind: tuple[float, int] | None = None
    """Only what is ranked behind this (score, image id)."""

    def excluded(self, part: Part, start: int, stop: int) -> Rows | NDArray[np.bool_]:
        """Which of a part's rows start..stop are out by `without` and `until`."""
        first, last = np.searchsorted(self.without, [part.first + start, part.first + stop])
        out = self.without[first:last] - (part.first + start)
        if self.until is None:
            return out
        late: NDArray[np.bool_] = part.moments[start:stop] > self.until
        late[out] = True
        return late


class _Best:
    """The best rows of one query so far, with all whose score in the database may be as good."""

    def __init__(self, limit: int, margin: float, behind: tuple[float, int] | None) -> None:
        self._limit, self._margin = limit, margin
        self._ceiling = np.inf if behind is None else behind[0]
        # Rows that are out have a score of minus infinity.
        self._floor = float(np.finfo(np.float32).min)
        self._rows: list[Rows] = []
        self._scores: list[Singles] = []
        self._count = 0
        self._room = 2 * limit

    def add(self, first: int, scores: Singles) -> None:
        """Take in the scores (n,) of the rows from `first` on; -inf for none."""
        if not self._count and self._ceiling == np.inf and len(scores) > self._room:
            # Most of the first part would be taken in to be cut away at once.
            self._raise_floor(scores)
        found = np.flatnonzero(scores >= self._floor)
        if not len(found):
            return
        chosen = scores[found]
        if self._ceiling != np.inf:
            within = chosen <= self._ceiling + self._margin
            found, chosen = found[within], chosen[within]
        self._rows.append(found + first)
        self._scores.append(chosen)
        self._count += len(found)
        if self._count > self._room:
            self._cut()

    def _raise_floor(self, sure: Singles) -> None:
        """So many rows have such scores (n,) and will surely be in the ranking if they are good
        enough.
        """
        if len(sure) >= self._limit:
            last = len(sure) - self._limit
            reached = float(np.partition(sure, last)[last])
            self._floor = max(self._floor, reached - 2 * self._margin)

    def _cut(self) -> None:
        rows, scores = np.concatenate(self._rows), np.concatenate(self._scores)
        sure = scores
        if self._ceiling != np.inf:
            # Others may be before the place that the ranking goes on behind.
            sure = scores[scores < self._ceiling - self._margin]
        self._raise_floor(sure)
        kept = scores >= self._floor
        rows, scores = rows[kept], scores[kept]
        self._rows, self._scores, self._count = [rows], [scores], len(rows)
        # Where many are as good as the last place, more room keeps it from being cut for each part.
        self._room = max(2 * self._limit, 3 * self._count // 2)

    def result(self) -> Chosen:
        """The rows (n,), ascending, and their scores (n,)."""
        if self._rows:
            self._cut()
            return self._rows[0], self._scores[0]
        return np.empty(0, np.int64), np.empty(0, np.float32)


Chosen = tuple[Rows, Singles]
"""Rows that may be in a ranking, ascending, and their scores (n,)."""


def begin(parts: Sequence[Part], query: Query) -> Callable[[], Singles] | None:
    """Have other threads compute what `select` looks at first; None where there is nothing."""
    for part, start, stop in _pieces(parts, _PART):
        return begin_scores(part.vectors[start:stop], query, ahead=True)
    return None


def select(
    parts: Sequence[Part],
    query: Query,
    *,
    limit: int | None,
    eligible: Eligible,
    margin: float = 0.0,
    begun: Callable[[], Singles] | None = None,
) -> Chosen:
    """The rows that may be among the `limit` best, None for all, where the database's scores are
    at most `margin` away from these. `begun` is what `begin` gave for the same parts and query.
    """
    rows = sum(len(part.image_ids) for part in parts)
    best = _Best(rows if limit is None else limit, margin, eligible.behind)
    for part, start, stop in _pieces(parts, _PART):
        scores = begun() if begun else scores_of_rows(part.vectors[start:stop], query)
        begun = None
        scores[eligible.excluded(part, start, stop)] = -np.inf
        best.add(part.first + start, scores)
    return best.result()


def select_many(
    parts: Sequence[Part],
    queries: Sequence[Query],
    *,
    limit: int,
    eligible: Eligible,
    margins: Sequence[float],
) -> Iterator[Chosen]:
    """What `select` gives for each query and its margin in turn, by one pass for QUERIES_AT_ONCE of
    them.
    """
    for number in range(0, len(queries), QUERIES_AT_ONCE):
        asked = slice(number, number + QUERIES_AT_ONCE)
        bests = [_Best(limit, margin, eligible.behind) for margin in margins[asked]]
        scores_of = ScoresOfMany(queries[asked], _PART_OF_MANY)
        for part, start, stop in _pieces(parts, _PART_OF_MANY):
            scores = scores_of(part.vectors[start:stop])
            scores[:, eligible.excluded(part, start, stop)] = -np.inf
            for best, row in zip(bests, scores, strict=True):
                best.add(part.first + start, row)
        for best in bests:
            yield best.result()


def scores_at(parts: Sequence[Part], query: Query, rows: Rows) -> Singles:
    """The scores (n,) of rows, ascending."""
    scores = np.empty(len(rows), np.float32)
    for part, own, place in _by_part(parts, rows):
        scores[place] = scores_of_rows(part.vectors, query, own)
    return scores


def ids_of(parts: Sequence[Part], rows: Rows) -> Rows:
    """The image ids (n,) of rows, ascending."""
    image_ids = np.empty(len(rows), np.int64)
    for part, own, place in _by_part(parts, rows):
        image_ids[place] = part.image_ids[own]
    return image_ids


def moments_of(parts: Sequence[Part], rows: Rows) -> NDArray[np.int64]:
    """When rows, ascending, were stored (n,), as microseconds from the year 2000."""
    moments = np.empty(len(rows), np.int64)
    for part, own, place in _by_part(parts, rows):
        moments[place] = part.moments[own]
    return moments


def vectors_of(parts: Sequence[Part], rows: Rows) -> Halves:
    """The vectors (n, width) of rows, ascending; a copy."""
    width = parts[0].vectors.shape[1] if parts else 0
    vectors = np.empty((len(rows), width), np.float16)
    for part, own, place in _by_part(parts, rows):
        vectors[place] = part.vectors[own]
    return vectors


def rows_of(parts: Sequence[Part], image_ids: Rows) -> Rows:
    """The rows of images, ascending; an image that was stored again has several."""
    found = []
    for part in parts:
        if not len(part.image_ids):
            continue
        places = np.searchsorted(part.image_ids, image_ids)
        places[places == len(part.image_ids)] = 0
        found.append(part.first + places[part.image_ids[places] == image_ids])
    return union(*found) if found else np.empty(0, np.int64)


def ranked(
    image_ids: Rows, scores: Singles, *, limit: int | None, behind: tuple[float, int] | None = None
) -> list[tuple[int, float]]:
    """The first `limit` (image id, score) by falling score, ties by image id, behind a place."""
    if behind is not None:
        score, image_id = behind
        kept = (scores < score) | ((scores == score) & (image_ids > image_id))
        image_ids, scores = image_ids[kept], scores[kept]
    order = _order(image_ids, scores)[:limit]
    return list(zip(image_ids[order].tolist(), scores[order].tolist(), strict=True))


def _order(image_ids: Rows, scores: Singles) -> Rows:
    """The places (n,) by falling score, ties by image id."""
    by_id = None if (image_ids[1:] > image_ids[:-1]).all() else np.argsort(image_ids)
    bits = (scores if by_id is None else scores[by_id]).view(np.int32)
    # Floats order as their bits do, negative ones the other way round. Turned over, with the place
    # behind them, they make one number, which numpy sorts several times faster than two keys.
    rising = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits).astype(np.int64)
    keys = np.sort((-rising << 32) | np.arange(len(bits), dtype=np.int64))
    places = keys & 0xFFFFFFFF
    return places if by_id is None else by_id[places]


def union(*ascending: Rows) -> Rows:
    """Each number of several arrays once, ascending; several times as fast as numpy's for few."""
    together = np.sort(np.concatenate(ascending))
    kept = np.ones(len(together), dtype=np.bool_)
    kept[1:] = together[1:] != together[:-1]
    return together[kept]


def difference(rows: Rows, without: Rows) -> Rows:
    """The numbers (n,) that aren't among others, both ascending."""
    if not len(without):
        return rows
    places = np.searchsorted(without, rows)
    places[places == len(without)] = 0
    return rows[without[places] != rows]


def _pieces(parts: Sequence[Part], size: int) -> Iterator[tuple[Part, int, int]]:
    for part in parts:
        for start in range(0, len(part.image_ids), size):
            yield part, start, min(start + size, len(part.image_ids))


def _by_part(parts: Sequence[Part], rows: Rows) -> Iterator[tuple[Part, Rows, slice]]:
    """Each part that has some of the rows, with their numbers in it and their places in `rows`."""
    for part in parts:
        first, last = np.searchsorted(rows, [part.first, part.first + len(part.image_ids)])
        if last > first:
            yield part, rows[first:last] - part.first, slice(first, last)
