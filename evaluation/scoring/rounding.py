"""Which computed scores and means differ: equal ones as one number, whatever rounding made of them.

Doubles are rounded, so two runs whose means are equal on paper often get means that differ in the
last bits: 13/30 is another double as the sum of 0.4, 0.7 and 0.2 than as that of 0.3, 0.5 and 0.5.
Whoever asks which is larger first makes equal ones the same number (`settled`), by a margin that
no rounding exceeds. With u = 2^-53, one operation has a relative error of at most u.

A score adds at most n terms, none negative, with n the cut-off, or MAX_CUT without one. A sum of n
terms in any order has a relative error of at most (n - 1) u (Higham 2002, "Accuracy and Stability
of Numerical Algorithms", section 4.2). A term takes few operations: a power or a logarithm of at
most 4 ulp, 8 u, and a product or two; where p is 0.9 as a double, RBP's terms move by at most 19 u
in all. nDCG divides such a sum by another; the expectations for a random order have no more
operations. So each score from 0 to 1 is within (2 n + 64) u of its
exact value, which leaves 20 u for what is done with it, such as a subtraction. A mean of q scores
adds q - 1 times and divides once, in whatever order: q u more.

For AP@50 over 1,500 queries the margin of two means is 4e-13, far below 1 / (50 x 1,500), the least
difference of two means of hits of 50.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.scoring.measures import MAX_CUT, Measure

Floats = npt.NDArray[np.float64]

#: The largest relative error of one operation on doubles.
UNIT: Final = 2.0**-53


def score_error(measure: Measure | None = None) -> float:
    """How far a computed score of a measure, by default of any, can be from its exact value."""
    terms = MAX_CUT if measure is None or measure.k is None else measure.k
    return (2 * terms + 64) * UNIT


def score_margin(measure: Measure | None = None) -> float:
    """How far two scores of a query can differ that are equal on paper."""
    return 2 * score_error(measure)


def mean_margin(queries: int, measure: Measure | None = None) -> float:
    """How far two means over so many queries can differ that are equal on paper."""
    return score_margin(measure) + 2 * queries * UNIT


def settled(values: npt.ArrayLike, margin: float) -> Floats:
    """The values (n,), where those that lie within the margin of a neighbor are one number, the
    lowest of them; NaN stays."""
    given = np.asarray(values, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    rising = given[order]
    begins = ~(np.diff(rising, prepend=-np.inf) <= margin)
    result = np.empty_like(given)
    result[order] = rising[np.flatnonzero(begins)][np.cumsum(begins) - 1]
    return result
