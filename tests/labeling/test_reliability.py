"""Agreement of several people: published examples, and constructed cases with known values."""

from __future__ import annotations

import numpy as np
import pytest

from labeling.judging.reliability import error_rates, reliability

pytestmark = pytest.mark.pure

#: K. Krippendorff, "Computing Krippendorff's alpha-reliability" (2011), example C: four observers,
#: twelve units, 0 for none.
FOUR = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
    [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
]
#: A. Dawid and A. Skene (1979), table 1: what five anesthetists said of 45 patients, the first of
#: them three times.
PATIENTS = """
    1111111 3334334 1122122 2223121 2223222 2223322 1222111 3333433 2222223 2322223 4444444 2223343
    1111111 2223212 1211111 1112111 1111111 1111111 2222221 2221322 2222222 2222221 2223222 2212222
    1111111 1111111 2322222 1111111 1111111 1121121 1111111 3333233 1111111 2222222 2223232 4334343
    2212232 2323233 3333432 1111111 1111111 1212111 2322222 1211111 2222222
"""


def table(*observers: object) -> np.ndarray:
    """(units, values) numbers of what observers said, who say 0 for nothing."""
    said = np.array(observers)
    return np.stack([(said == value).sum(axis=0) for value in range(1, said.max() + 1)], axis=1)


@pytest.mark.parametrize(
    ("observers", "alpha"),
    [
        (([1, 2, 1, 1, 1, 1, 1, 1, 2, 1], [2, 2, 2, 1, 1, 2, 1, 1, 1, 1]), 0.095),
        (([1, 1, 2, 2, 4, 3, 3, 3, 5, 4, 4, 1], [2, 1, 2, 2, 2, 3, 3, 3, 5, 4, 4, 4]), 0.692),
        (FOUR, 0.743),
    ],
)
def test_alpha_is_krippendorffs(observers, alpha):
    found = reliability(table(*observers))
    assert found.alpha == pytest.approx(alpha, abs=0.0005)
    assert found.low is not None
    assert found.high is not None
    assert found.low < alpha < found.high <= 1


def test_weights_stand_for_the_items_that_were_not_drawn():
    # Both negative, they differ, both positive: 900, 40 and 60 times.
    whole = np.repeat([[2, 0], [1, 1], [0, 2]], [900, 40, 60], axis=0)
    found = reliability(whole)
    assert (found.items, found.raw, found.positive) == (1000, 0.96, 120 / 160)
    share = 160 / 2000
    chance = 2 * share * (1 - share) * 2000 / 1999
    assert found.alpha == pytest.approx(1 - 0.04 / chance)
    # Of the negatives every fiftieth, of what differs and the positives every fifth.
    drawn = np.repeat([[2, 0], [1, 1], [0, 2]], [18, 8, 12], axis=0)
    estimate = reliability(drawn, np.repeat([50, 5, 5], [18, 8, 12]))
    assert (estimate.items, estimate.raw, estimate.positive) == (38, found.raw, found.positive)
    assert estimate.alpha == pytest.approx(found.alpha)
    unweighted = reliability(drawn)
    assert unweighted.raw == pytest.approx(30 / 38)
    # Fewer items, a wider interval.
    wide, narrow = (one.high - one.low for one in (estimate, found))  # type: ignore[operator]
    assert wide > 2 * narrow > 0


def test_what_says_nothing():
    assert reliability([[1, 0], [0, 1]]).items == 0
    same = reliability([[2, 0], [2, 0], [0, 1]])
    assert (same.items, same.alpha, same.low, same.raw, same.positive) == (2, None, None, 1.0, None)
    with pytest.raises(ValueError, match="negative"):
        reliability([[2, 0]], [-1])
    with pytest.raises(ValueError, match="needs a judgment"):
        error_rates([[[0, 0]]])


def test_error_rates_are_those_of_dawid_and_skene():
    said = np.array([[int(one) for one in patient] for patient in PATIENTS.split()])
    observers = [said[:, :3], *(said[:, [column]] for column in range(3, 7))]
    counts = np.stack(
        [np.stack([(one == k).sum(axis=1) for k in range(1, 5)], axis=1) for one in observers],
        axis=1,
    )
    assert counts.shape == (45, 5, 4)
    found = error_rates(counts)
    # As the paper prints them.
    assert np.round(found.prevalence, 2).tolist() == [0.40, 0.42, 0.11, 0.07]
    first = np.round(found.confusion[0], 2).tolist()
    assert first == [
        [0.89, 0.11, 0, 0],
        [0.07, 0.88, 0.05, 0],
        [0, 0.34, 0.66, 0],
        [0, 0, 0.56, 0.44],
    ]
    assert np.allclose(found.confusion.sum(axis=2), 1)
    assert found.posterior[0].argmax() == 0
    assert found.posterior[10].argmax() == 3


def test_error_rates_find_who_guesses():
    rng = np.random.default_rng(3)
    truth = rng.random(4000) < 0.3
    says = [
        np.where(truth, rng.random(4000) < sensitivity, rng.random(4000) < 1 - specificity)
        for sensitivity, specificity in ((0.95, 0.98), (0.9, 0.9), (0.5, 0.5), (0.8, 0.95))
    ]
    counts = np.stack([np.stack([~one, one], axis=1) for one in says], axis=1)
    found = error_rates(counts)
    assert found.prevalence[1] == pytest.approx(0.3, abs=0.02)
    assert np.allclose(found.confusion[:, 1, 1], [0.95, 0.9, 0.5, 0.8], atol=0.03)
    assert np.allclose(found.confusion[:, 0, 0], [0.98, 0.9, 0.5, 0.95], atol=0.03)
    # An item twice is two items.
    twice = error_rates(counts[:500], np.full(500, 2.0))
    assert np.allclose(twice.confusion, error_rates(counts[:500]).confusion)
