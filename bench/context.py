"""What place and month add to naming species, in two made-up worlds: `python -m bench.context`.

In the first, species have ranges and seasons, and people photograph what lives around their homes.
In the second all species live everywhere, and people photograph their favorites around their homes,
so that place only reveals the observer. In both an image shows its species with noise. The encoder
is fitted as by `train_context`, and measured on observers and places that it hasn't seen, and on
other images of the observers from whom it learned.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bench import harness
from core.geo_grid import CELL
from extras.context.harmonics import DEGREE, Fitting, Seen, chosen

HEAD: Final = "World | Measured on | Images | Image alone | With context | Context alone | Weight"
DIMENSION: Final = 64
#: Of the noise of an image beside its species' vector, which has length 1.
NOISE: Final = 2.6
WORLDS: Final = ("species have ranges", "people have favorites")


def main(options: Any) -> tuple[bool, list[str]]:
    """The shares of images that are named correctly."""
    rows = [row for world in WORLDS for row in _rows(world, options)]
    return True, [
        f"{options.images:,} images of {options.species:,} species by {options.observers:,} "
        "observers. The penalty and the weight are those that name most images of held-out "
        "observers rightly.",
        harness.table(HEAD, rows),
    ]


def _world(world: str, options: Any) -> tuple[np.ndarray, ...]:
    """Places (n, 2), months (n,), observers (n,) and species (n,), seeded."""
    rng = np.random.default_rng(1)
    homes = _anywhere(rng, options.observers)
    person = rng.integers(options.observers, size=options.images)
    places = homes[person] + rng.normal(0, 1.5, (options.images, 2))
    months = rng.integers(1, 13, options.images)
    if world == WORLDS[0]:
        centers = _anywhere(rng, options.species)
        apart = (months[:, None] - rng.integers(1, 13, options.species)) * np.pi / 6
        likely = _near(places, centers) * np.exp(1.5 * np.cos(apart))
    else:
        likely = rng.dirichlet(np.full(options.species, 0.05), options.observers)[person]
    drawn = likely.cumsum(axis=1) > rng.uniform(size=(len(person), 1)) * likely.sum(1)[:, None]
    return places, months, person, drawn.argmax(axis=1)


def _anywhere(rng: np.random.Generator, count: int) -> np.ndarray:
    """(n, 2) places between 37° south and 64° north, even over the sphere."""
    latitudes = np.degrees(np.arcsin(rng.uniform(-0.6, 0.9, count)))
    return np.stack([latitudes, rng.uniform(-180, 180, count)], axis=1)


def _near(places: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """(n, s): how common a species is there; its range reaches about 2,500 km."""
    (north, east), (other_north, other_east) = (
        np.radians(places.T)[..., None],
        np.radians(centers.T),
    )
    cosine = np.sin(north) * np.sin(other_north)
    cosine += np.cos(north) * np.cos(other_north) * np.cos(east - other_east)
    return np.asarray(np.exp((cosine - 1) / 0.08) + 1e-6)


def _unit(vectors: np.ndarray) -> np.ndarray:
    units: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units.astype(np.float32)


def _rows(world: str, options: Any) -> list[list[Any]]:
    places, months, person, species = _world(world, options)
    rng = np.random.default_rng(2)
    texts = _unit(rng.normal(size=(options.species, DIMENSION)))
    noise = NOISE / np.sqrt(DIMENSION) * rng.normal(size=(len(species), DIMENSION))
    images = _unit(texts[species] + noise)
    cells = np.floor(places / CELL).astype(int) @ np.array([1000, 1])
    far = np.isin(cells, rng.permutation(np.unique(cells))[: len(np.unique(cells)) // 5])
    strangers = np.isin(person, rng.permutation(person.max() + 1)[::5])
    again = ~far & ~strangers & (rng.uniform(size=len(species)) < 0.1)
    learned = ~far & ~strangers & ~again
    fitting = Fitting(options.species, DEGREE)
    fitting.add(places[learned], months[learned], species[learned])
    fitting.add_squares(places[learned], months[learned], species[learned])

    def seen(which: np.ndarray) -> Seen:
        return Seen(places[which], months[which], species[which], images[which])

    encoder, weight = chosen(fitting, texts, seen(strangers & ~far))
    rows = []
    for name, which in (
        ("the same observers", again),
        ("held-out observers", strangers & ~far),
        ("held-out places", far),
    ):
        judged, count = seen(which), int(which.sum())
        shares = [
            judged.right(encoder, texts, weight_given) / count
            for weight_given in (0.0, weight, 1.0)
        ]
        rows.append([world, name, count, *(f"{share:.1%}" for share in shares), f"{weight:g}"])
    return rows


if __name__ == "__main__":
    sizes = {"images": 200_000, "species": 200, "observers": 1500}
    harness.run(main, "Context", ("numpy", "scipy"), **sizes)
