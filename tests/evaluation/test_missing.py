"""The ranges that missing labels leave, against trying every way to complete them."""

from __future__ import annotations

from itertools import chain, combinations, product

import numpy as np
import pytest

from evaluation.scoring import metrics
from evaluation.scoring.measures import parse_measure
from evaluation.scoring.missing import (
    FirstImages,
    has_range,
    least_difference,
    lowest_mean,
    mean_range,
    range_with_queries,
    score_range,
)
from evaluation.scoring.significance import bootstrap_intervals

METRICS = {
    "AP": metrics.average_precision_at_k,
    "nDCG": metrics.ndcg_at_k,
    "R": metrics.recall_at_k,
}
MEASURES = ("AP@4", "nDCG@4", "R@4")


class Toy:
    """A query with few images, and two runs' orders of them."""

    def __init__(self, random, images=9):
        ids = random.permutation(images)
        known, possible = random.integers(1, 4), random.integers(0, 6)
        self.relevant, self.possible = ids[:known], ids[known : known + possible]
        self.orders = [
            random.permutation(images)[: random.integers(1, images + 1)] for _ in range(2)
        ]

    def first(self, run, k):
        """What the ranges are computed from."""
        ids = self.orders[run][:k]
        possible = np.isin(ids, self.possible)
        return FirstImages(
            image_ids=ids,
            relevant=np.isin(ids, self.relevant),
            possible=possible,
            total=len(self.relevant),
            beyond=len(self.possible) - int(possible.sum()),
        )

    def completions(self, most):
        """Every set of at most `most` missing images."""
        sizes = range(min(most, len(self.possible)) + 1)
        return chain.from_iterable(combinations(self.possible.tolist(), size) for size in sizes)

    def score(self, run, measure, missing):
        """The score where these images are relevant too."""
        relevant = [*self.relevant.tolist(), *missing]
        hits = np.isin(self.orders[run], relevant)
        return float(METRICS[measure.name](hits, len(relevant), measure.k))


def toys(count, seed=5):
    random = np.random.default_rng(seed)
    return [Toy(random) for _ in range(count)]


@pytest.mark.parametrize("key", MEASURES)
def test_a_score_s_range_is_that_of_all_completions(key):
    measure = parse_measure(key)
    moved = 0
    for toy in toys(60):
        low, high = score_range(toy.first(0, 4), measure, 6)
        for most in range(7):
            scores = [toy.score(0, measure, missing) for missing in toy.completions(most)]
            assert low[most] == pytest.approx(min(scores), abs=1e-12)
            assert high[most] == pytest.approx(max(scores), abs=1e-12)
        moved += low[6] < low[0] < high[6]
    assert moved > 5


@pytest.mark.parametrize("key", MEASURES)
def test_the_mean_s_range_is_that_of_all_completions_of_all_queries(key):
    measure = parse_measure(key)
    for seed in range(6):
        queries = toys(3, seed)
        tables = np.stack([score_range(toy.first(0, 4), measure, 4) for toy in queries])
        means = [
            np.mean([toy.score(0, measure, part) for toy, part in zip(queries, parts, strict=True)])
            for parts in product(*(toy.completions(4) for toy in queries))
            if sum(map(len, parts)) <= 4
        ]
        assert mean_range(tables, 4) == pytest.approx((min(means), max(means)), abs=1e-12)


def test_an_interval_by_both_doubts_holds_that_of_a_completion_with_a_higher_mean():
    measure, none = parse_measure("R@1"), np.zeros(1, np.bool_)
    queries = [FirstImages(np.arange(1), ~none, none, total, 1) for total in (1, 2)]
    tables = np.stack([score_range(first, measure, 1) for first in queries])
    # The mean is lowest with (1/2, 1/2), and the low end with (1, 1/3).
    assert mean_range(tables, 1) == (0.5, 0.75)
    assert range_with_queries(tables, 1) == pytest.approx((1 / 3, 1))


@pytest.mark.parametrize("key", MEASURES)
@pytest.mark.parametrize("most", [0, 1, 2])
def test_an_interval_by_both_doubts_holds_those_of_all_completions(key, most):
    measure = parse_measure(key)
    wider, by_themselves = [], []
    for seed in range(8):
        queries = toys(7, seed)
        tables = np.stack([score_range(toy.first(0, 4), measure, most) for toy in queries])
        scores = [
            [toy.score(0, measure, part) for toy, part in zip(queries, parts, strict=True)]
            for parts in shared_completions(queries, most)
        ]
        spans = bootstrap_intervals(scores)
        low, high = range_with_queries(tables, most)
        assert low <= spans[:, 0].min() + 1e-12
        assert high >= spans[:, 1].max() - 1e-12
        wider.append(high - low - (spans[:, 1].max() - spans[:, 0].min()))
        alone = bootstrap_intervals(tables[:, :, -1].T)
        by_themselves.append(alone[1, 1] - alone[0, 0] - (high - low))
    # Not much wider, and narrower than if every query could lack all of them.
    assert np.mean(wider) < (0.04 if most else 1e-12)
    assert min(by_themselves) >= -1e-12
    assert max(by_themselves) > (0.02 if most == 2 else -1)


def shared_completions(queries, most):
    """For each set of at most `most` missing images of all queries, those of each query."""
    possible = [(n, image) for n, toy in enumerate(queries) for image in toy.possible.tolist()]
    for chosen in chain.from_iterable(combinations(possible, size) for size in range(most + 1)):
        yield [[image for n, image in chosen if n == number] for number in range(len(queries))]


@pytest.mark.parametrize("key", MEASURES)
def test_a_difference_is_bounded_by_the_same_missing_images(key):
    measure = parse_measure(key)
    loose, apart = [], []
    for toy in toys(200):
        first, second = toy.first(0, 4), toy.first(1, 4)
        bound = least_difference(first, second, measure, 6)
        for most in range(7):
            least = min(
                toy.score(0, measure, missing) - toy.score(1, measure, missing)
                for missing in toy.completions(most)
            )
            assert bound[most] <= least + 1e-12
            loose.append(least - bound[most])
        alone = score_range(first, measure, 6)[0] - score_range(second, measure, 6)[1]
        apart.append((bound - alone).max())
    # Tighter than the runs' ranges by themselves, and exact where images add up.
    assert max(apart) > 0.1
    assert min(apart) >= -1e-12
    assert np.mean(loose) < (0.02 if measure.name == "AP" else 1e-12)


def test_a_run_against_itself_never_falls_behind():
    for toy in toys(20):
        run = toy.first(0, 4)
        for key in ("nDCG@4", "R@4"):
            assert least_difference(run, run, parse_measure(key), 5).tolist() == [0.0] * 6


def test_nothing_moves_where_nothing_is_missing():
    [toy] = toys(1)
    table = score_range(toy.first(0, 4), parse_measure("AP@4"), 0)
    assert table.shape == (2, 1)
    assert table[0] == table[1] == toy.score(0, parse_measure("AP@4"), ())
    with pytest.raises(ValueError, match="no query"):
        lowest_mean(np.zeros((0, 4)), 3)


def test_a_run_without_images_can_only_lose_nothing():
    nothing = np.zeros(0, np.int64)
    run = FirstImages(nothing, nothing.astype(bool), nothing.astype(bool), total=2, beyond=9)
    for key in MEASURES:
        assert score_range(run, parse_measure(key), 3).tolist() == [[0.0] * 4] * 2


def test_which_measures_have_ranges():
    keys = ("AP@50", "nDCG@100", "R@10", "AP", "RR@50", "P@10", "UncappedAP@50")
    assert [has_range(parse_measure(key)) for key in keys] == [True] * 3 + [False] * 4
