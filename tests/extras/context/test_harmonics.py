"""What the encoder of place and season learns, on drawn places."""

from __future__ import annotations

import numpy as np
import pytest

from extras.context.harmonics import Fitting, Seen, combined, features

pytestmark = pytest.mark.pure


def test_features_are_orthogonal_over_the_sphere_and_the_year() -> None:
    rng = np.random.default_rng(0)
    count = 40_000
    latitudes = np.degrees(np.arcsin(rng.uniform(-1, 1, count)))
    places = np.stack([latitudes, rng.uniform(-180, 180, count)], axis=1)
    rows = features(places, rng.integers(1, 13, count), 2)
    assert rows.shape == (count, 9 * 5)
    products = rows.T @ rows / count
    apart = products - np.diag(np.diag(products))
    assert np.abs(apart).max() < 0.006
    assert np.diag(products).min() > 0.01
    # Without a month only the constant is left of the year.
    unknown = features(places[:1], np.array([0]), 2).reshape(9, 5)
    assert (unknown[:, 1:] == 0).all()
    np.testing.assert_allclose(unknown[:, 0], features(places[:1], np.array([5]), 2)[0, ::5])


def test_it_learns_where_and_when_species_are() -> None:
    rng = np.random.default_rng(1)
    species = np.arange(4000) % 4
    # Two of the north and two of the south; of each pair one in spring and one in autumn.
    places = np.stack(
        [rng.normal(np.where(species < 2, 50, -30), 5), rng.uniform(-20, 60, 4000)], axis=1
    )
    months = (np.where(species % 2, 10, 4) + rng.integers(-1, 2, 4000)) % 12 + 1
    texts = np.eye(4, 8, dtype=np.float32)
    fitting = Fitting(4, 3)
    fitting.add(places[:3000], months[:3000], species[:3000])
    fitting.add_squares(places[:3000], months[:3000], species[:3000])
    encoder = fitting.fitted(texts, 0.01)
    # Images that tell nothing of the species.
    images = np.full((1000, 8), 8**-0.5, np.float32)
    seen = Seen(places[3000:], months[3000:], species[3000:], images)
    assert seen.right(encoder, texts, 0.0) == 250
    assert seen.right(encoder, texts, 0.3) > 970
    context = encoder(seen.places, seen.months)
    both = combined(images, context, 0.3)
    np.testing.assert_allclose(np.linalg.norm(both, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(combined(images, 0 * context, 0.3), images, atol=1e-6)
