"""Vectors as they are stored and compared: of unit length, rounded to half precision."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


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
