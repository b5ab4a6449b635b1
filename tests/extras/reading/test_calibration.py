"""What a reader says against what people found, on toy data."""

import numpy as np
import pytest

from extras.reading.calibration import TooFew, cross_fitted, fit, require_enough

pytestmark = pytest.mark.pure


def test_a_curve_by_hand():
    """0.2 twice with no hit, 0.5 and 0.4 pooled with one of two, 0.9 twice with two."""
    said = np.array([0.2, 0.9, 0.4, 0.5, 0.2, 0.9])
    relevant = np.array([False, True, True, False, False, True])
    curve = fit(said, relevant)
    assert curve.said == pytest.approx([0.2, 0.45, 0.9])
    assert curve.found == pytest.approx([1 / 4, 2 / 4, 3 / 4])
    assert curve([0.0, 0.325, 1.0]) == pytest.approx([0.25, 0.375, 0.75])
    assert curve.log_odds([0.45]) == pytest.approx([0.0])


def test_cross_fitting_finds_that_a_reader_knows_nothing():
    """In each query it says 1 of a random half: by its own images it may look right, by others' it
    doesn't.
    """
    rng = np.random.default_rng(40)
    relevant = rng.random(400) < 0.3
    said = rng.random(400)
    calibrated = cross_fitted(said, relevant, np.arange(400) // 40)
    error = np.mean((calibrated - relevant) ** 2)
    assert error >= 0.3 * 0.7 - 0.01
    assert np.mean((fit(said, relevant)(said) - relevant) ** 2) < error
    assert calibrated.min() > 0
    assert calibrated.max() < 1


def test_below_fifty_of_a_kind_nothing_is_claimed():
    require_enough(np.arange(100) < 50)
    with pytest.raises(TooFew, match="49 relevant and 51 not relevant"):
        require_enough(np.arange(100) < 49)
