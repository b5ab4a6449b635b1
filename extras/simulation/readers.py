"""A simulated reader: a machine that says of each image of a pool how likely it is relevant.

Its scores are normal with variance 1, and relevant images have a mean that is √2 Φ⁻¹(AUC) higher
(the binormal model of ROC curves). So its calibrated log-odds are known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from retrieval.ranking.scan import Scores

Flags = NDArray[np.bool_]

#: The share of the relevant images, by its own reading, that a reader keeps where it screens. With
#: fewer left out certificates cost less (README.md).
KEPT: Final = 0.998
#: From this probability on a reader is confident, and likewise that an image isn't relevant.
CONFIDENT: Final = 0.9


@dataclass(frozen=True, slots=True)
class Reader:
    """How good a simulated reader is."""

    auc: float
    """How likely it scores a relevant image above another one, 0.5..1."""
    correlation: float = 0.0
    """Of its scores with CLIP's among the relevant images and among the others, 0..1."""

    def log_odds(self, relevant: Flags, clip: Scores, *, prevalence: float, seed: int) -> Scores:
        """What it says of the images (n,) of a pool, which CLIP scores `clip`, calibrated on images
        of which the share `prevalence` is relevant.
        """
        own = np.random.default_rng((seed, 3)).normal(size=len(relevant))
        shared = np.zeros(len(relevant))
        for kind in (relevant, ~relevant):
            if (spread := np.std(clip[kind]) if kind.any() else 0.0) > 0:
                shared[kind] = (clip[kind] - np.mean(clip[kind])) / spread
        noise = self.correlation * shared + math.sqrt(1 - self.correlation**2) * own
        apart = math.sqrt(2) * NormalDist().inv_cdf(self.auc)
        prior = math.log(prevalence / (1 - prevalence))
        return prior + apart * (apart * relevant + noise) - apart**2 / 2


def parse_reader(text: str) -> Reader:
    """The reader that "auc:0.9" or "auc:0.9:0.5" (with a correlation) names. ValueError for other
    texts.
    """
    kind, *numbers = text.split(":")
    try:
        reader = Reader(*map(float, numbers))
        if kind == "auc" and 0.5 <= reader.auc < 1 and 0 <= reader.correlation <= 1:
            return reader
    except (TypeError, ValueError):
        pass
    raise ValueError(
        f'"{text}" is no reader: write auc:0.9, with an AUC from 0.5 to less than 1, or '
        "auc:0.9:0.5 with the correlation of its errors with CLIP's, from 0 to 1."
    )


def kept(log_odds: Scores) -> Flags:
    """Which images (n,) a reader keeps: the likeliest, to which KEPT of the relevant ones belong if
    its probabilities are right.
    """
    odds = np.exp(log_odds)
    order = np.argsort(-log_odds, kind="stable")
    expected = np.cumsum((odds / (1 + odds))[order])
    flags = np.zeros(len(log_odds), np.bool_)
    flags[order[: np.searchsorted(expected, KEPT * expected[-1]) + 1]] = True
    return flags


def doubted(log_odds: Scores, said: Flags) -> Flags:
    """Of which images (n,) a confident reader says something else than people have."""
    confident = math.log(CONFIDENT / (1 - CONFIDENT))
    return np.where(said, log_odds <= -confident, log_odds >= confident)
