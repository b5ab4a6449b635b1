"""CMH as the benchmark of certificates computes it is buscarpy's."""

import numpy as np
import pytest
from buscarpy import calculate_h0

from bench.trust import TARGET, cmh, ranked_pass


@pytest.mark.parametrize("seed", range(12))
def test_cmh_is_buscarpys(seed):
    random = np.random.default_rng(seed)
    images = int(random.integers(150, 600))
    ranked = random.random(60) < np.linspace(0.8, 0, 60)
    drawn = random.random(int(random.integers(1, images - 60))) < 0.02
    labels = np.concatenate([ranked, drawn])
    theirs = calculate_h0(labels.astype(np.int64), images, TARGET)
    assert cmh(labels, images) == pytest.approx(theirs, rel=1e-9)


def test_a_ranked_pass_ends_with_the_streak():
    truth = np.zeros(1000, dtype=bool)
    truth[[3, 103, 250, 900]] = True
    everything = np.arange(1000)
    assert len(ranked_pass(everything, truth)) == 204
    assert len(ranked_pass(everything[204:], truth)) == 147
    assert len(ranked_pass(everything[351:], truth)) == 100
    assert len(ranked_pass(everything[850:], truth)) == 150
    assert len(ranked_pass(everything[990:], truth)) == 10
