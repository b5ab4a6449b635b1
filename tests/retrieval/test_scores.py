"""Scores are exact, and the fast product is never further off than its bound."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from retrieval.ranking import scan
from retrieval.ranking.scan import (
    Eligible,
    ImpreciseProduct,
    Part,
    error_bound,
    exact_scores,
    query_of,
    rank_rows,
    scores_at,
)
from tests.retrieval.making import random_vectors


def unit(rows):
    """Rows (n, d) of unit length in half precision."""
    wide = np.asarray(rows, np.float64)
    return (wide / np.linalg.norm(wide, axis=1, keepdims=True)).astype(np.float16)


def adversarial(dimension):
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
    return unit([*rows, *random_vectors(8, dimension)])


def whole_numbers(vectors, query):
    """The exact inner products, in integer arithmetic: a half is a multiple of 2⁻²⁴."""
    asked = [int(value * 2**24) for value in query.astype(float)]
    return [
        Fraction(
            sum(
                int(value * 2**24) * other
                for value, other in zip(row.astype(float), asked, strict=True)
            ),
            2**48,
        )
        for row in vectors
    ]


@pytest.mark.parametrize("dimension", [1, 2, 7, 16, 17, 768, 1024, 4000])
def test_scores_are_exact_and_fast_ones_within_their_bound(dimension):
    vectors = adversarial(dimension)
    many = scan.fast_product(vectors)(vectors)
    for number, query in enumerate(vectors):
        wanted = whole_numbers(vectors, query)
        assert [Fraction(score) for score in exact_scores(vectors, query)] == wanted
        shuffled = np.random.default_rng(number).permutation(dimension)
        again = exact_scores(vectors[:, shuffled], query[shuffled])
        assert again.tobytes() == exact_scores(vectors, query).tobytes()
        one = scan.fast_product(query[None])(vectors)[:, 0]
        for fast in (one, many[:, number]):
            errors = [
                abs(Fraction(float(a)) - b) for a, b in zip(fast.ravel(), wanted, strict=True)
            ]
            assert max(errors) <= error_bound(query)
        # What is proven for stored vectors, which are at most 1.01 long (Higham, section 4.2).
        length = float(np.linalg.norm(query.astype(float)))
        rounding = dimension * 2.0**-24
        assert error_bound(query) >= rounding / (1 - rounding) * 1.01 * length
    # Were the bound too wide, every row would be scored in double precision.
    assert error_bound(vectors[0]) <= 2 * (dimension + 8) * 2.0**-24


@pytest.mark.parametrize("many", [1, 5])
@pytest.mark.parametrize("limit", [1, 40, 1000])
def test_the_first_are_those_of_a_sort_however_close_they_are(monkeypatch, many, limit):
    monkeypatch.setattr(scan, "PIECE_ROWS", 20)
    monkeypatch.setattr(scan, "CHUNK_ROWS", 50)
    monkeypatch.setattr(scan, "EXACT_ROWS", 16)
    centers = random_vectors(4, 96)[np.arange(700) % 4]
    # Some are equal, others differ in the last place of one number alone.
    vectors = unit(centers)
    vectors[::7, 5] = np.nextafter(vectors[::7, 5], np.float16(1))
    ids = np.random.default_rng(3).permutation(5000)[:700]
    halves = [np.arange(300), np.arange(300, 700)]
    parts, stored = [], []
    for rows in halves:
        own = np.sort(ids[rows])
        parts.append(Part(int(rows[0]), own, own, vectors[rows]))
        stored.append(own)
    image_ids = np.concatenate(stored)
    queries = vectors[:many] if many > 1 else unit(centers[:1] + 1e-3)
    without = np.array([3, 299, 300], np.int64)
    lists = rank_rows(parts, queries, limit=limit, eligible=Eligible(without))
    for query, found in zip(queries, lists, strict=True):
        scores = vectors.astype(np.float64) @ query.astype(np.float64)
        order = [row for row in np.lexsort((image_ids, -scores)) if row not in without][:limit]
        assert found == [(int(image_ids[row]), float(scores[row])) for row in order]


def test_what_was_stored_at_the_last_moment_is_ranked_and_nothing_later():
    vectors, ids = unit(random_vectors(30, 8)), np.arange(30)
    part = Part(0, ids, 100 + ids, vectors)
    eligible = Eligible(np.empty(0, np.int64), until=110)
    [found] = rank_rows([part], vectors[:1], limit=30, eligible=eligible)
    assert sorted(image_id for image_id, _ in found) == list(range(11))


def test_many_queries_are_scored_in_smaller_chunks():
    vectors, ids = unit(random_vectors(scan.CHUNK_ROWS, 4)), np.arange(scan.CHUNK_ROWS)
    part, everything = Part(0, ids, ids, vectors), Eligible(np.empty(0, np.int64))
    tracemalloc.start()
    try:
        lists = rank_rows([part], vectors[:600], limit=1, eligible=everything)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(lists) == 600
    # Of all rows at once the scores would take 315 MB.
    assert most < 160e6


def test_a_processor_whose_product_is_worse_than_its_bound_is_noticed(monkeypatch):
    vectors = unit(random_vectors(50, 64))
    ids = np.arange(50)
    monkeypatch.setattr(
        scan,
        "fast_product",
        lambda queries: lambda rows: (rows @ queries.T).astype(np.float16).astype(np.float64),
    )
    part, everything = Part(0, ids, ids, vectors), Eligible(np.empty(0, np.int64))
    with pytest.raises(ImpreciseProduct):
        rank_rows([part], vectors[:1], limit=50, eligible=everything)


def test_there_is_one_zero():
    vectors = np.zeros((3, 8), np.float16)
    vectors[:, 0] = [-0.0, -1, 1]
    query = query_of([0.0] * 7 + [1.0], 8)
    assert not np.signbit(exact_scores(vectors, query)).any()
    assert scores_at([], query, np.empty(0, np.int64)).tolist() == []


@pytest.mark.parametrize(
    "vector", [[1.0], [1.0, 0, 0], [np.nan, 1], [np.inf, 0], [9.0, 0], [[1, 0]]]
)
def test_a_vector_that_is_not_the_models_is_refused(vector):
    with pytest.raises(ValueError, match="A vector of 2 finite numbers"):
        query_of(vector, 2)
