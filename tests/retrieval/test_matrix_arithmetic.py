"""Scores are added in pgvector's order, however many rows and queries there are."""

import gc
import subprocess
import sys

import numpy as np
import pytest

from retrieval.ranking.arithmetic import (
    LANES,
    Query,
    ScoresOfMany,
    begin_scores,
    margin,
    padded,
    scores_of_rows,
)
from tests.processes import ROOT
from tests.retrieval.making import random_vectors


def matrix(rows, dimension, seed=1):
    """Rows of unit length (n, width) in half precision."""
    halves = np.zeros((rows, padded(dimension)), np.float16)
    if rows:
        vectors = random_vectors(rows, dimension, seed)
        halves[:, :dimension] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return halves


def queries_of(count, dimension):
    return [Query.of(row[:dimension]) for row in matrix(count, dimension, seed=8)]


def step_by_step(vectors, query):
    """What pgvector's loop gives, one column after the other."""
    wide, asked = vectors.astype(np.float32), query.halves.astype(np.float32)
    whole = query.dimension // LANES * LANES
    lanes = np.zeros((len(vectors), LANES), np.float32)
    for start in range(0, whole, LANES):
        lanes += wide[:, start : start + LANES] * asked[start : start + LANES]
    four = lanes[:, :4] + lanes[:, 4:]
    two = four[:, :2] + four[:, 2:]
    total = two[:, 0] + two[:, 1]
    for column in range(whole, query.dimension):
        total += wide[:, column] * asked[column]
    return total


@pytest.mark.parametrize("dimension", [1, 7, 8, 9, 64, 203])
@pytest.mark.parametrize("rows", [0, 1, 3, 66, 5001])
def test_scores_are_added_in_one_order(rows, dimension):
    vectors = matrix(rows, dimension)
    queries = queries_of(6, dimension)
    wanted = np.stack([step_by_step(vectors, query) for query in queries])
    assert np.array_equal([scores_of_rows(vectors, query) for query in queries], wanted)
    assert np.array_equal(begin_scores(vectors, queries[0], ahead=True)(), wanted[0])
    some = np.random.default_rng(2).permutation(rows)[: rows // 2]
    assert np.array_equal(scores_of_rows(vectors, queries[1], some), wanted[1, some])
    for count in (1, 4, 6):
        scores_of = ScoresOfMany(queries[:count], max(rows, 1))
        assert np.array_equal(scores_of(vectors), wanted[:count])
        assert np.array_equal(scores_of(vectors[: rows // 3]), wanted[:count, : rows // 3])


def test_another_order_gives_other_scores_within_the_margin():
    vectors, query = matrix(5000, 512), queries_of(1, 512)[0]
    scores = scores_of_rows(vectors, query)
    other = (vectors[:, ::-1].astype(np.float64) @ query.halves[::-1].astype(np.float64)).astype(
        np.float32
    )
    assert 0 < np.abs(scores - other).max() < margin(query) / 2


def test_no_score_is_a_negative_zero():
    vectors = np.zeros((3, 8), np.float16)
    vectors[:, 0] = [-0.0, -1, 1]
    query = Query.of([0.0] * 7 + [1.0])
    assert not np.signbit(scores_of_rows(vectors, query)).any()
    assert not np.signbit(ScoresOfMany([query], 3)(vectors)).any()


def test_what_was_begun_may_be_left():
    query = queries_of(1, 64)[0]
    for _ in range(20):
        begin_scores(matrix(20_000, 64), query, ahead=True)
        gc.collect()
    vectors = matrix(100, 64)
    assert np.array_equal(scores_of_rows(vectors, query), step_by_step(vectors, query))


@pytest.mark.parametrize(
    ("vectors", "rows"),
    [
        (np.zeros((4, 16), np.float16), None),
        (np.zeros((4, 8), np.float32), None),
        (np.zeros((4, 16), np.float16)[:, ::2], None),
        (np.zeros((4, 8), np.float16), [4]),
        (np.zeros((4, 8), np.float16), [-1, 2]),
    ],
)
def test_nothing_is_read_beside_the_vectors(vectors, rows):
    query = queries_of(1, 8)[0]
    with pytest.raises(ValueError, match=r"ectors|row"):
        scores_of_rows(vectors, query, None if rows is None else np.array(rows))
    if rows is None:
        with pytest.raises(ValueError, match="ectors"):
            ScoresOfMany([query], 4)(vectors)


def test_more_vectors_than_there_is_room_for_are_refused():
    with pytest.raises(ValueError, match="room"):
        ScoresOfMany(queries_of(1, 8), 3)(matrix(4, 8))


def test_a_process_compiles_when_it_ranks_or_is_about_to():
    program = (
        "import sys, time\n"
        "from retrieval.ranking import arithmetic\n"
        "name = 'retrieval.ranking.kernel'\n"
        "print(name in sys.modules)\n"
        "arithmetic.warm_up()\n"
        "while not hasattr(sys.modules.get(name), 'many'): time.sleep(0.01)\n"
        "print('torch' in sys.modules)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert run.stdout.split() == ["False", "False"]
