"""A further number for each image of a pool, from which the order that learns learns beside the
vectors. An extra appends the function that gives it to FEATURES.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeling.candidates.models import CandidateList
from retrieval.ranking.scan import Halves, Rows


class Feature(NamedTuple):
    """The numbers of a pool's images."""

    key: str
    """Says all that they follow from, in at most 100 characters; not empty."""
    numbers: Halves
    """(n,) as `ridge.odds_numbers` gives them."""
    offered: NDArray[np.bool_]
    """(n,) whether the image comes up in the queue. Audits draw the others too."""


FEATURES: list[Callable[[CandidateList, Rows, str | None], Feature | None]] = []
"""Each takes a ready list, ids (n,) of its images and the key of an earlier answer, to be given
again, or None for the present one; returns None where the query has no such numbers. The first
answer counts.
"""


def feature_of(
    candidate_list: CandidateList, image_ids: Rows, key: str | None = None
) -> Feature | None:
    """The numbers of these images (n,): the present ones, or those that a key stands for."""
    answers = (make(candidate_list, image_ids, key) for make in FEATURES)
    return next((answer for answer in answers if answer is not None), None)
