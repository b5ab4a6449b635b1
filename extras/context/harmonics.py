"""What grows and lives where and when: a small location encoder of spherical harmonics and season.

It predicts, from a photograph's place and month, the text vector of the species that it shows, as
far as that differs from the mean of all species. Fitted in closed form, species alike in weight, so
that the much photographed ones don't rule it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
#: Of the harmonics; those of degree 10 tell about 2,000 km apart.
DEGREE: Final = 10
RIDGES: Final = (0.001, 0.01, 0.1, 1.0, 10.0)
WEIGHTS: Final = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
#: Functions of the month: a constant, the year's wave and its half.
SEASONS: Final = 5


def features(places: NDArray[np.float64], months: NDArray[np.int64], degree: int) -> Floats:
    """(n, (degree + 1)² · SEASONS + 2 · c): real spherical harmonics of places (n, 2 + c), first
    latitude and longitude in degrees, times waves of months (n,), 1 to 12, or 0 where it isn't
    known; then the other columns, standardized, and their squares, as species of middle heights
    need them.
    """
    from scipy.special import sph_harm_y

    down, round_ = np.radians(90 - places[:, 0]), np.radians(places[:, 1])
    columns = []
    for level in range(degree + 1):
        for order in range(level + 1):
            wave = sph_harm_y(level, order, down, round_)
            columns.append(wave.real)
            if order:
                columns.append(wave.imag)
    turns = 2 * np.pi * (months - 0.5) / 12
    known = months > 0
    waves = [wave(k * turns) for k in (1, 2) for wave in (np.cos, np.sin)]
    seasons = [np.ones(len(months)), *(np.where(known, wave, 0.0) for wave in waves)]
    product: np.ndarray = np.stack(columns, axis=1)[:, :, None]
    product = product * np.stack(seasons, axis=1)[:, None, :]
    product = product.reshape(len(months), (degree + 1) ** 2 * SEASONS)
    return np.hstack([product, places[:, 2:], places[:, 2:] ** 2]).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Harmonics:
    """The fitted encoder."""

    degree: int
    weights: Floats
    """(features, d)"""

    def __call__(self, places: NDArray[np.float64], months: NDArray[np.int64]) -> Floats:
        """(n, d) vectors of places (n, 2 + c) and months (n,) as `features` has them."""
        vectors: Floats = features(places, months, self.degree) @ self.weights
        return vectors

    def save(self, path: Path) -> None:
        """Write it to an NPZ file."""
        np.savez_compressed(path, degree=self.degree, weights=self.weights)

    @classmethod
    def load(cls, path: Path) -> Harmonics:
        """Read it; OSError, KeyError or ValueError where the file isn't one."""
        with np.load(path, allow_pickle=False) as arrays:
            return cls(int(arrays["degree"]), arrays["weights"].astype(np.float32))


class Fitting:
    """What the images add up to, species by species; memory doesn't grow with them."""

    def __init__(self, species: int, degree: int, columns: int = 0) -> None:
        count = (degree + 1) ** 2 * SEASONS + 2 * columns
        self.degree = degree
        self.counts = np.zeros(species, np.int64)
        self.sums = np.zeros((species, count))
        self.squares = np.zeros((count, count))
        self._blocks: list[NDArray[np.float64]] = []

    def add(
        self, places: NDArray[np.float64], months: NDArray[np.int64], species: NDArray[np.int64]
    ) -> None:
        """Take in images: places (n, 2 + c), months (n,), and the numbers (n,) of their species."""
        rows = features(places, months, self.degree).astype(np.float64)
        np.add.at(self.sums, species, rows)
        np.add.at(self.counts, species, 1)

    def add_squares(
        self, places: NDArray[np.float64], months: NDArray[np.int64], species: NDArray[np.int64]
    ) -> None:
        """Take in the same images a second time, once all are counted."""
        rows = features(places, months, self.degree).astype(np.float64)
        self.squares += rows.T @ (rows / self.counts[species][:, None])

    def fitted(self, texts: Floats, ridge: float) -> Harmonics:
        """The encoder for the text vectors (species, d): the least squares with a penalty of
        `ridge` times the mean square of a feature. Species without images are left out.
        """
        seen = self.counts > 0
        means = self.sums[seen] / self.counts[seen][:, None]
        apart = texts[seen] - texts[seen].mean(axis=0)
        penalty = ridge * np.trace(self.squares) / len(self.squares)
        gram = self.squares + penalty * np.eye(len(self.squares))
        weights = np.linalg.solve(gram, means.T @ apart)
        return Harmonics(self.degree, weights.astype(np.float32))


@dataclass(frozen=True, slots=True)
class Seen:
    """Images by which an encoder is chosen or measured."""

    places: NDArray[np.float64]
    """(n, 2 + c)"""
    months: NDArray[np.int64]
    """(n,)"""
    species: NDArray[np.int64]
    """(n,)"""
    vectors: Floats
    """(n, d), of unit length."""

    def right(self, encoder: Harmonics, texts: Floats, weight: float) -> int:
        """Of how many the nearest of the text vectors (s, d) is their species', with so much weight
        of their context.
        """
        context = encoder(self.places, self.months)
        near = combined(self.vectors, context, weight) @ texts.T
        return int((near.argmax(axis=1) == self.species).sum())


def chosen(fitting: Fitting, texts: Floats, by: Seen) -> tuple[Harmonics, float]:
    """The encoder of one of RIDGES and the weight of WEIGHTS by which most images are named
    rightly, the smallest weight of equals.
    """
    tried = [
        (by.right(encoder, texts, weight), -weight, encoder)
        for encoder in (fitting.fitted(texts, ridge) for ridge in RIDGES)
        for weight in WEIGHTS
    ]
    _, less, encoder = max(tried, key=lambda trial: trial[:2])
    return encoder, -less


def combined(images: Floats, context: Floats, weight: float) -> Floats:
    """(n, d) unit vectors: 1 − weight of each image's unit vector and weight of its context's, made
    unit length; zeros in `context`, where a place isn't known, leave the image's.
    """
    lengths = np.linalg.norm(context, axis=1, keepdims=True)
    unit = np.divide(context, lengths, out=np.zeros_like(context), where=lengths > 1e-9)
    mixed = (1 - weight) * images + weight * unit
    return np.asarray(mixed / np.linalg.norm(mixed, axis=1, keepdims=True), np.float32)
