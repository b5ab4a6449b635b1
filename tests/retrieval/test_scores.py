"""Scores are exact, the fast product is never further off than its bound, and within that bound it
hides no row.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from retrieval.ranking import scan
from retrieval.ranking.scan import (
    ImpreciseProduct,
    Part,
    RowFilter,
    error_bound,
    exact_scores,
    query_of,
    rank_rows,
    scores_at,
    sort_by_score,
)
from tests.retrieval.making import random_vectors

pytestmark = pytest.mark.pure

NOTHING = np.empty(0, np.int64)


def unit(rows: Any) -> np.ndarray:
    """Rows (n, d) of unit length in half precision."""
    wide = np.asarray(rows, np.float64)
    return (wide / np.linalg.norm(wide, axis=1, keepdims=True)).astype(np.float16)


def whole(vectors: np.ndarray) -> Part:
    """A matrix (n, d) of the images 0, 1, …"""
    ids = np.arange(len(vectors))
    return Part(0, ids, ids, vectors)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A matrix is gone through in many small parts."""
    monkeypatch.setattr(scan, "PIECE_ROWS", 20)
    monkeypatch.setattr(scan, "CHUNK_ROWS", 50)
    monkeypatch.setattr(scan, "EXACT_ROWS", 16)


def adversarial(dimension: int) -> np.ndarray:
    """Rows (n, d) whose sums in single precision lose the most, or that few products have."""
    alternating = np.where(np.arange(dimension) % 2, -1.0, 1.0)
    falling = 2.0 ** -(np.arange(dimension) % 24)
    lonely = np.full(dimension, 1e-30)
    lonely[-1] = 1
    subnormal = np.full(dimension, 2.0**-20)
    subnormal[0] = 1
    blocks = np.where(np.arange(dimension) < dimension // 2, 1.0, -1.0)
    rows = [np.ones(dimension), alternating, falling, falling[::-1], lonely, subnormal, blocks]
    rows += [np.ones(dimension) + 1e-3 * alternating, falling * alternating]
    return unit([*rows, *random_vectors(4, dimension)])


def whole_numbers(vectors: np.ndarray, query: np.ndarray) -> list[Fraction]:
    """The exact inner products, in integer arithmetic: a half is a multiple of 2⁻²⁴."""
    factors = [int(value * 2**24) for value in query.astype(float)]
    return [
        Fraction(
            sum(int(value * 2**24) * by for value, by in zip(row, factors, strict=True)), 2**48
        )
        for row in vectors.astype(float)
    ]


def fast_scores(queries: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The fast scores (q, n)."""
    scores = np.empty((len(queries), len(vectors)), np.float32)
    scan.fast_product(queries)(vectors, scores)
    return scores


@pytest.mark.parametrize("dimension", [1, 7, 17, 1024])
def test_scores_are_exact_and_fast_ones_within_their_bound(dimension: int) -> None:
    vectors = adversarial(dimension)
    many = fast_scores(vectors, vectors)
    for number, query in enumerate(vectors):
        wanted = whole_numbers(vectors, query)
        assert [Fraction(score) for score in exact_scores(vectors, query)] == wanted
        shuffled = np.random.default_rng(number).permutation(dimension)
        again = exact_scores(vectors[:, shuffled], query[shuffled])
        assert again.tobytes() == exact_scores(vectors, query).tobytes()
        [one] = fast_scores(query[None], vectors)
        for fast in (one, many[number]):
            errors = [abs(Fraction(float(a)) - b) for a, b in zip(fast, wanted, strict=True)]
            assert max(errors) <= error_bound(query)
        # What is proven for stored vectors, which are at most 1.01 long (Higham, section 4.2).
        length = float(np.linalg.norm(query.astype(float)))
        rounding = dimension * 2.0**-24
        assert error_bound(query) >= rounding / (1 - rounding) * 1.01 * length
    # Were the bound too wide, every row would be scored in double precision.
    assert error_bound(vectors[0]) <= 2 * (dimension + 8) * 2.0**-24


@pytest.mark.parametrize("many", [1, 5])
@pytest.mark.parametrize("limit", [1, 40, 1000])
def test_the_first_are_those_of_a_sort_however_close_they_are(
    small_parts: None, many: int, limit: int
) -> None:
    centers = random_vectors(4, 96)[np.arange(700) % 4]
    # Some are equal, others differ in the last place of one number alone.
    vectors = unit(centers)
    vectors[::7, 5] = np.nextafter(vectors[::7, 5], np.float16(1))
    ids = np.random.default_rng(3).permutation(5000)[:700]
    halves = [np.arange(300), np.arange(300, 700)]
    stored = [np.sort(ids[rows]) for rows in halves]
    parts = [
        Part(int(rows[0]), own, own, vectors[rows])
        for rows, own in zip(halves, stored, strict=True)
    ]
    image_ids = np.concatenate(stored)
    queries = vectors[:many] if many > 1 else unit(centers[:1] + 1e-3)
    without = np.array([3, 299, 300], np.int64)
    lists = rank_rows(parts, queries, limit=limit, row_filter=RowFilter(without))
    for query, found in zip(queries, lists, strict=True):
        scores = vectors.astype(np.float64) @ query.astype(np.float64)
        order = [row for row in np.lexsort((image_ids, -scores)) if row not in without][:limit]
        assert found == [(int(image_ids[row]), float(scores[row])) for row in order]


# A row is (0.5, n · 2⁻¹⁰, sign): its score for QUERY is 0.5 + n · 2⁻²¹, and a step of n is a little
# less than the bound. The third number, which the query doesn't see, is the sign of the error.
QUERY = np.array([1, 2**-11, 0], np.float16)
ERROR = 0.9 * error_bound(QUERY)


def rows_of(steps: Any, signs: Any) -> tuple[Part, np.ndarray]:
    """A matrix with these scores and errors, and its exact scores."""
    vectors = np.stack([np.full(len(steps), 0.5), np.array(steps) * 2.0**-10, signs], axis=1)
    halves = vectors.astype(np.float16)
    scores = 0.5 + np.array(steps) * 2.0**-21
    assert scores.tolist() == exact_scores(halves, QUERY).tolist()
    return whole(halves), scores


@pytest.fixture
def as_wrong_as_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast product is off by nearly its bound, in the direction that the row says."""

    def product(queries: np.ndarray) -> Callable[[np.ndarray, np.ndarray], None]:
        def fast(vectors: np.ndarray, scores: np.ndarray) -> None:
            wide = vectors.astype(np.float64)
            scores[:] = queries.astype(np.float64) @ wide.T + ERROR * np.sign(wide[:, 2:]).T

        return fast

    monkeypatch.setattr(scan, "fast_product", product)


def first(part: Part, limit: int, behind: tuple[float, int] | None = None) -> list[tuple[int, Any]]:
    row_filter = RowFilter(NOTHING, behind=behind)
    [found] = rank_rows([part], QUERY[None], limit=limit, row_filter=row_filter)
    return found


@pytest.mark.usefixtures("as_wrong_as_may_be")
def test_a_row_that_the_fast_product_puts_last_is_still_the_first() -> None:
    assert error_bound(QUERY) / 2 < 2.0**-21 < error_bound(QUERY)
    # Equal scores: the image with the lowest id is first, whatever the fast scores say.
    part, _ = rows_of([0] * 5, [-1, 1, 1, 1, 1])
    assert first(part, 1) == [(0, 0.5)]
    # One step better, and nearly two bounds worse.
    part, _ = rows_of([0, 0, 0, 1], [1, 1, 1, -1])
    assert first(part, 1) == [(3, 0.5 + 2**-21)]


@pytest.mark.usefixtures("as_wrong_as_may_be")
def test_a_ranking_that_goes_on_behind_a_place_neither_repeats_nor_loses_a_row() -> None:
    # The place has the score of the first two rows. The first is before it, though it looks worse,
    # and so vouches for none; the second is behind it, though it looks better.
    part, _ = rows_of([0, 0, -3], [-1, 1, -1])
    assert first(part, 1, behind=(0.5, 1)) == [(2, 0.5 - 3 * 2**-21)]
    assert first(part, 1, behind=(0.5, 0)) == [(1, 0.5)]


@pytest.mark.usefixtures("as_wrong_as_may_be", "small_parts")
@pytest.mark.parametrize("seed", range(4))
def test_errors_within_the_bound_change_no_ranking(seed: int) -> None:
    draw = np.random.default_rng(seed)
    part, scores = rows_of(draw.integers(-6, 6, 400), draw.choice([-1, 1], 400))
    order = sort_by_score(part.image_ids, scores, limit=None)
    for limit in (1, 7, 150):
        assert first(part, limit) == order[:limit]
        for place in (0, 3, 200):
            image_id, score = order[place]
            found = first(part, limit, behind=(score, image_id))
            assert found == order[place + 1 : place + 1 + limit]


def test_a_product_that_is_worse_than_its_bound_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = unit(random_vectors(50, 64))

    def imprecise(queries: np.ndarray) -> Callable[[np.ndarray, np.ndarray], None]:
        def fast(vectors: np.ndarray, scores: np.ndarray) -> None:
            scores[:] = (queries @ vectors.T).astype(np.float16)

        return fast

    monkeypatch.setattr(scan, "fast_product", imprecise)
    with pytest.raises(ImpreciseProduct):
        rank_rows([whole(vectors)], vectors[:1], limit=50, row_filter=RowFilter(NOTHING))


def test_what_was_stored_at_the_last_moment_is_ranked_and_nothing_later() -> None:
    vectors, ids = unit(random_vectors(30, 8)), np.arange(30)
    part = Part(0, ids, 100 + ids, vectors)
    [found] = rank_rows([part], vectors[:1], limit=30, row_filter=RowFilter(NOTHING, until=110))
    assert sorted(image_id for image_id, _ in found) == list(range(11))


@contextmanager
def peak() -> Iterator[list[int]]:
    """The most bytes of arrays that the block holds at once."""
    most: list[int] = []
    tracemalloc.start()
    try:
        yield most
        most.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("many", [1, 32])
def test_four_times_the_rows_take_no_more_memory(
    monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr(scan, "PIECE_ROWS", 256)
    monkeypatch.setattr(scan, "CHUNK_ROWS", 2048)
    vectors = unit(random_vectors(40_000, 8))
    found = []
    for count in (10_000, 40_000):
        with peak() as most:
            part, row_filter = whole(vectors[:count]), RowFilter(np.array([5, 7_000]))
            rank_rows([part], vectors[:many], limit=100, row_filter=row_filter)
        found.append(most[0] - part.image_ids.nbytes)
    assert found[1] < 1.5 * found[0]


def test_many_queries_are_scored_in_smaller_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_CHUNK_SCORES", 1 << 17)
    vectors = unit(random_vectors(10_000, 4))
    with peak() as most:
        lists = rank_rows([whole(vectors)], vectors[:100], limit=1, row_filter=RowFilter(NOTHING))
    assert len(lists) == 100
    # Of all rows at once the scores would take 4 MB.
    assert most[0] < 2e6


def test_there_is_one_zero() -> None:
    vectors = np.zeros((3, 8), np.float16)
    vectors[:, 0] = [-0.0, -1, 1]
    query = query_of([0.0] * 7 + [1.0], 8)
    assert not np.signbit(exact_scores(vectors, query)).any()
    assert scores_at([], query, NOTHING).tolist() == []


@pytest.mark.parametrize("vector", [[1.0], [1.0, 0, 0], [np.nan, 1], [9.0, 0], [[1, 0]]])
def test_a_vector_that_is_not_the_models_is_refused(vector: Any) -> None:
    with pytest.raises(ValueError, match="A vector of 2 finite numbers"):
        query_of(vector, 2)
