"""Normalization of vectors for storage: to unit length and half precision."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

LENGTH_TOLERANCE: Final = 0.01
"""How much the length of a unit vector may differ from 1."""
_BLOCK: Final = 2048


class Fault(IntEnum):
    """Why a vector can't be stored."""

    NONE = 0
    NOT_FINITE = 1
    ZERO = 2
    LENGTH = 3


@dataclass(frozen=True, slots=True)
class UnitRows:
    """Normalized vectors."""

    vectors: np.ndarray
    """(n, d) float16; rows with a fault hold anything."""
    lengths: np.ndarray
    """(n,) float64, before scaling."""
    faults: np.ndarray
    """(n,) int8, of `Fault`."""


def unit_rows(vectors: np.ndarray, *, scale: bool = False) -> UnitRows:
    """Scale each row of (n, d) floats to unit length and round it to half precision.

    A row whose numbers are halves already, and which is as long as a rounded unit vector can be, is
    left as it is, bit for bit: dividing by its length would round it a second time. Other lengths
    within LENGTH_TOLERANCE of 1 are divided out in double precision and then rounded, as
    `half_rounded` does; those further off are faults unless `scale` is set.
    """
    count, dimension = vectors.shape
    result = UnitRows(
        vectors=np.empty((count, dimension), np.float16),
        lengths=np.empty(count, np.float64),
        faults=np.zeros(count, np.int8),
    )
    for first in range(0, count, _BLOCK):
        block = slice(first, first + _BLOCK)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            _unit_block(vectors[block], result, block, scale=scale)
    return result


def _unit_block(rows: np.ndarray, result: UnitRows, block: slice, *, scale: bool) -> None:
    wide = rows.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    faults = result.faults[block]
    off = np.abs(lengths - 1)
    if not scale:
        faults[off > LENGTH_TOLERANCE] = Fault.LENGTH
    faults[lengths == 0] = Fault.ZERO
    faults[~np.isfinite(lengths)] = Fault.NOT_FINITE
    halves = rows.astype(np.float16, copy=False)
    # Rounding to half moves each number by at most a 2^-11th of itself, and by 2^-25 near zero.
    rounded = off <= 2.0**-11 + np.sqrt(rows.shape[1]) * 2.0**-25
    if halves is not rows:
        rounded &= (halves == rows).all(axis=1)
    result.vectors[block] = halves
    again = ~rounded
    result.vectors[block][again] = wide[again] / lengths[again, None]
    result.lengths[block] = lengths


def half_rounded(vector: ArrayLike) -> list[float]:
    """Scale a vector (d,) to unit length and round it to half precision, as it is stored and used.

    Raises ValueError for a vector of length zero or with values that are not finite.
    """
    wide = np.asarray(vector, dtype=np.float64)
    length = np.linalg.norm(wide)
    if wide.ndim != 1 or not np.isfinite(length) or length == 0:
        raise ValueError("A vector of finite values and a length above zero is needed.")
    rounded: list[float] = (wide / length).astype(np.float16).astype(float).tolist()
    return rounded
