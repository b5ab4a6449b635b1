"""The order that learns, against the least-squares problem that defines it."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from labeling.learning.ridge import (
    ODDS_PRIOR,
    PRIOR_SPREAD,
    RIDGE,
    PoolMoments,
    agree,
    direction_and_weight,
    interleave,
    learned_indices,
    odds_numbers,
    pool_moments,
    pool_scores,
)

pytestmark = pytest.mark.pure

Floats = NDArray[np.float64]
Halves = NDArray[np.float16]


def unit_halves(values: Floats) -> Halves:
    return (values / np.linalg.norm(values, axis=-1, keepdims=True)).astype(np.float16)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(14)


def drawn_pool(rng: np.random.Generator, count: int, dimension: int) -> tuple[Halves, Halves]:
    """Vectors that share a direction, as a model's do, and a text's vector."""
    vectors = unit_halves(rng.normal(size=(count, dimension)) + 2 * rng.normal(size=dimension))
    return vectors, unit_halves(rng.normal(size=dimension))


def direction(
    moments: PoolMoments, text: Halves, judged: Halves, relevant: NDArray[np.bool_]
) -> Halves:
    """That of images without a further number."""
    return direction_and_weight(moments, text, judged, relevant, np.empty((len(judged), 0)))[0]


def least_squares(
    moments: PoolMoments, text: Halves, judged: Halves, relevant: NDArray[np.bool_]
) -> Halves:
    """The same minimum by `lstsq` over the rows of both terms of the sum."""
    y = np.where(relevant, 1.0, -1.0)
    a = np.where(relevant, np.sqrt((~relevant).sum() / relevant.sum()), 1.0)
    x = (judged.astype(float) - moments.mean) / moments.scale
    prior = 0.25 * text.astype(float) / moments.text_spread
    x -= (a[:, None] * x).sum(0) / a.sum()
    y -= (a * y).sum() / a.sum()
    rows = np.vstack([np.sqrt(a)[:, None] * x, np.sqrt(RIDGE) * np.eye(len(text))])
    wanted = np.concatenate([np.sqrt(a) * y, np.sqrt(RIDGE) * prior])
    return unit_halves(np.linalg.lstsq(rows, wanted, rcond=None)[0])


def test_moments_are_those_of_the_whole_pool_in_double_precision(rng, tmp_path):
    vectors, text = drawn_pool(rng, 1000, 24)
    mapped = np.memmap(tmp_path / "vectors", np.float16, "w+", shape=vectors.shape)
    mapped[:] = vectors
    moments = pool_moments([mapped[:300], mapped[300:]], text)
    wide = vectors.astype(float)
    assert moments.mean == pytest.approx(wide.mean(0), rel=1e-13)
    scale = np.sqrt(((wide - wide.mean(0)) ** 2).sum(1).mean())
    assert moments.scale == pytest.approx(scale, rel=1e-12)
    standard = (wide - wide.mean(0)) / scale
    assert moments.text_spread == pytest.approx((standard @ text.astype(float)).std(), rel=1e-12)
    assert (standard**2).sum(1).mean() == pytest.approx(1)


def test_a_pool_without_images_has_no_moments():
    with pytest.raises(ValueError, match="without images"):
        pool_moments([], np.ones(4, np.float16))


def test_a_direction_by_hand():
    """Mean 0, s = 1, σ = 1/√2 and w₀ = (√2/4, 0); one relevant and one irrelevant image, both of
    weight 1: S = ±(½, ½), and w = w₀ + ½(1 - √2/8) / (½ + 10) · (1, 1).
    """
    vectors = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], np.float16)
    text = np.array([1, 0], np.float16)
    moments = pool_moments([vectors], text)
    assert (moments.mean.tolist(), moments.scale) == ([0, 0], 1)
    assert moments.text_spread == pytest.approx(np.sqrt(0.5))
    judged = np.array([[1, 0], [0, -1]], np.float16)
    found = direction(moments, text, judged, np.array([True, False]))
    prior = np.sqrt(2) / 4
    step = 2 * 0.5 * (1 - prior / 2) / (2 * 0.5 + 10)
    assert agree(found, unit_halves(np.array([prior + step, step])))


@pytest.mark.parametrize(("judged", "dimension"), [(2, 16), (40, 64), (150, 64), (64, 64)])
def test_a_direction_is_the_minimum_whichever_way_it_is_solved(rng, judged, dimension):
    vectors, text = drawn_pool(rng, 400, dimension)
    relevant = np.arange(judged) % 7 == 0
    moments = pool_moments([vectors], text)
    found = direction(moments, text, vectors[:judged], relevant)
    again = least_squares(moments, text, vectors[:judged], relevant)
    assert found.dtype == np.float16
    assert np.linalg.norm(found.astype(float)) == pytest.approx(1, abs=1e-3)
    assert agree(found, again)
    cosine = found.astype(float) @ again.astype(float)
    assert cosine == pytest.approx(found.astype(float) @ found.astype(float), abs=1e-6)
    assert not agree(found, text)


def test_a_direction_doesnt_depend_on_the_order_of_the_judgments(rng):
    vectors, text = drawn_pool(rng, 400, 64)
    relevant = rng.random(120) < 0.2
    moments = pool_moments([vectors], text)
    found = direction(moments, text, vectors[:120], relevant)
    for _ in range(20):
        places = rng.permutation(120)
        assert agree(direction(moments, text, vectors[places], relevant[places]), found)


def test_a_further_number_counts_as_one_more_component(rng):
    """The vectors with the number as a component of their own are the same regression."""
    vectors, text = drawn_pool(rng, 400, 24)
    relevant = rng.random(120) < 0.3
    numbers = odds_numbers(np.where(rng.random(400) < 0.1, np.nan, rng.random(400)))
    assert float(numbers.astype(float).mean()) == pytest.approx(0, abs=1e-3)
    moments = pool_moments([vectors], text)
    judged = numbers[:120, None].astype(float)
    w, v = direction_and_weight(moments, text, vectors[:120], relevant, judged)
    x = np.hstack([(vectors[:120].astype(float) - moments.mean) / moments.scale, judged])
    a = np.where(relevant, np.sqrt((~relevant).sum() / relevant.sum()), 1.0)
    y = np.where(relevant, 1.0, -1.0)
    prior = np.append(text.astype(float) * (PRIOR_SPREAD / moments.text_spread), ODDS_PRIOR)
    x, y = x - np.average(x, axis=0, weights=a), y - np.average(y, weights=a)
    equal = np.vstack([np.sqrt(a)[:, None] * x, np.sqrt(RIDGE) * np.eye(25)])
    goal = np.append(np.sqrt(a) * y, np.sqrt(RIDGE) * prior)
    whole = np.linalg.lstsq(equal, goal, rcond=None)[0]
    length = np.linalg.norm(whole[:24])
    assert np.allclose(w.astype(float), whole[:24] / length, atol=1e-3)
    assert v == pytest.approx(whole[24] * moments.scale / length, rel=1e-3)
    untouched = direction_and_weight(moments, text, vectors[:0], relevant[:0], judged[:0])
    assert untouched[0].tobytes() == text.tobytes()
    assert untouched[1] > 0


def test_directions_agree_within_one_unit_of_the_last_place():
    one = np.array([0.5, -0.25, 0, 1e-7], np.float16)
    assert agree(one, np.nextafter(one, np.float16(1)))
    twice = np.nextafter(np.nextafter(one, np.float16(1)), np.float16(1))
    assert not agree(one, twice)
    assert not agree(one, -one)


def test_the_text_is_the_direction_until_both_kinds_are_judged(rng):
    vectors, text = drawn_pool(rng, 50, 16)
    moments = pool_moments([vectors], text)
    for relevant in ([], [True], [False] * 9, [True] * 9):
        found = direction(moments, text, vectors[: len(relevant)], np.array(relevant, np.bool_))
        assert found.tobytes() == text.tobytes()


def test_a_pool_of_copies_keeps_the_texts_order(rng):
    vectors, text = drawn_pool(rng, 1, 16)
    copies = np.repeat(vectors, 600, axis=0)
    moments = pool_moments([copies], text)
    found = direction(moments, text, copies[:2], np.array([True, False]))
    assert found.tobytes() == text.tobytes()


def test_scores_are_exact_and_ties_are_ordered_by_id(rng):
    vectors, text = drawn_pool(rng, 700, 48)
    vectors = np.concatenate([vectors, vectors[:90]])
    image_ids = rng.permutation(10_000)[: len(vectors)]
    scores = pool_scores(vectors, text)
    products = vectors.astype(float) @ text.astype(float)
    assert scores.tobytes() == products.tobytes()
    order = image_ids[learned_indices(scores, image_ids)]
    wanted = sorted(zip(-products, image_ids, strict=True))
    assert order.tolist() == [image for _, image in wanted]


orders = st.permutations(range(60))


@given(orders, orders, st.sets(st.integers(0, 80)))
def test_one_image_in_four_comes_from_the_frozen_order(learned, frozen, judged):
    queue = list(interleave(learned, frozen, judged=judged))
    assert sorted(queue) == sorted(set(range(60)) - judged)
    left = list(queue)
    for place, image in enumerate(queue, start=len(judged) + 1):
        order = frozen if place % 4 == 0 else learned
        assert image == next(one for one in order if one in left)
        left.remove(image)


def test_an_order_that_ends_is_continued_by_the_other():
    assert list(interleave([5, 3], [1, 2, 3, 4, 5, 6], judged=[2])) == [5, 3, 1, 4, 6]
    assert list(interleave([1, 2, 3, 4, 5, 6], [4], judged=[])) == [1, 2, 3, 4, 5, 6]
    assert list(interleave([], [], judged=[7])) == []


def test_a_queue_reads_no_further_than_it_is_read():
    learned, frozen = iter(range(1000)), iter(range(1000, 2000))
    assert list(islice(interleave(learned, frozen, judged=[]), 8)) == [
        *(0, 1, 2, 1000, 3, 4, 5, 1001)
    ]
    assert (next(learned), next(frozen)) == (6, 1002)
