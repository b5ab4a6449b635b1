"""What place and month add to naming species, in two made-up worlds: `python -m bench.context`.

In the first, species have ranges and seasons, and people photograph what lives around their homes.
In the second all species live everywhere, and people photograph their favorites around their homes:
whatever place adds there, it knows of the people. In both an image tells its species with noise.
The encoder is fitted as by `train_context`, and measured on observers and places that it hasn't
seen, and beside them on other images of the observers from whom it learned.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from bench import harness
from core.geo_grid import CELL
from retrieval.context.harmonics import DEGREE, Fitting, Seen, chosen

HEAD: Final = (
    "World", "Measured on", "Images", "Image alone", "With context", "Context alone", "Weight",
)  # fmt: skip
DIMENSION: Final = 64
#: Of the noise of an image beside its species' vector, which has length 1.
NOISE: Final = 2.6
WORLDS: Final = ("species have ranges", "people have favorites")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options = harness.parse(
        "context", __doc__, arguments, images=200_000, species=200, observers=1500
    )
    rows = []
    for world in WORLDS:
        made = _world(world, options.images, options.species, options.observers)
        rows += _measured(world, made, options.species)
    print(
        harness.section(
            "Context",
            options.command,
            ("numpy", "scipy"),
            f"{options.images:,} images of {options.species:,} species by {options.observers:,} "
            "observers. The penalty and the weight are those that name most images of held-out "
            "observers rightly.",
            harness.table(HEAD, rows),
        )
    )
    return 0


def _world(world: str, images: int, species: int, observers: int) -> dict[str, Any]:
    """Places (n, 2), months (n,), observers (n,) and species (n,), seeded."""
    rng = np.random.default_rng(1)
    homes = _anywhere(rng, observers)
    person = rng.integers(observers, size=images)
    places = homes[person] + rng.normal(0, 1.5, (images, 2))
    months = rng.integers(1, 13, images)
    if world == WORLDS[0]:
        centers = _anywhere(rng, species)
        peaks = rng.integers(1, 13, species)
        likely = _near(places, centers) * _in_season(months, peaks)
    else:
        likely = rng.dirichlet(np.full(species, 0.05), observers)[person]
    drawn = likely.cumsum(axis=1) > rng.uniform(size=(images, 1)) * likely.sum(1)[:, None]
    return {"places": places, "months": months, "person": person, "species": drawn.argmax(axis=1)}


def _anywhere(rng: np.random.Generator, count: int) -> np.ndarray:
    """(n, 2) places between 37° south and 64° north, even over the sphere."""
    latitudes = np.degrees(np.arcsin(rng.uniform(-0.6, 0.9, count)))
    return np.stack([latitudes, rng.uniform(-180, 180, count)], axis=1)


def _near(places: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """(n, s): how common a species is there; its range reaches about 2,500 km."""
    one, other = np.radians(places), np.radians(centers)
    cosine = np.sin(one[:, :1]) * np.sin(other[:, 0]) + np.cos(one[:, :1]) * np.cos(
        other[:, 0]
    ) * np.cos(one[:, 1:] - other[:, 1])
    found: np.ndarray = np.exp((cosine - 1) / 0.08) + 1e-6
    return found


def _in_season(months: np.ndarray, peaks: np.ndarray) -> np.ndarray:
    apart = (months[:, None] - peaks) * np.pi / 6
    found: np.ndarray = np.exp(1.5 * np.cos(apart))
    return found


def _measured(world: str, made: dict[str, Any], species: int) -> list[list[str]]:
    rng = np.random.default_rng(2)
    texts = rng.normal(size=(species, DIMENSION))
    texts = (texts / np.linalg.norm(texts, axis=1, keepdims=True)).astype(np.float32)
    truth = made["species"]
    images = texts[truth] + NOISE / np.sqrt(DIMENSION) * rng.normal(size=(len(truth), DIMENSION))
    images = (images / np.linalg.norm(images, axis=1, keepdims=True)).astype(np.float32)
    cells = np.floor(made["places"] / CELL).astype(int) @ np.array([1000, 1])
    far = np.isin(cells, rng.permutation(np.unique(cells))[: len(np.unique(cells)) // 5])
    strangers = np.isin(made["person"], rng.permutation(made["person"].max() + 1)[::5])
    known = ~far & ~strangers
    again = known & (rng.uniform(size=len(truth)) < 0.1)
    learned = known & ~again
    fitting = Fitting(species, DEGREE)
    given = tuple(made[name][learned] for name in ("places", "months", "species"))
    fitting.add(*given)
    fitting.add_squares(*given)

    def seen(which: np.ndarray) -> Seen:
        return Seen(made["places"][which], made["months"][which], truth[which], images[which])

    encoder, weight = chosen(fitting, texts, seen(strangers & ~far))
    rows = []
    for name, which in (
        ("the same observers", again),
        ("held-out observers", strangers & ~far),
        ("held-out places", far),
    ):
        shares = (
            seen(which).right(encoder, texts, one) / which.sum() for one in (0.0, weight, 1.0)
        )
        shown = [f"{share:.1%}" for share in shares]
        rows.append([world, name, f"{which.sum():,}", *shown, f"{weight:g}"])
    return rows


if __name__ == "__main__":
    sys.exit(main())
