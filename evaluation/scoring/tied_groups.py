"""A ranking as groups of images with equal scores, for the mean over all orders of these.

Source: McSherry and Najork 2008, "Computing information retrieval performance measures efficiently
in the presence of tied scores".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from evaluation.scoring import metrics
from evaluation.scoring.metrics import Floats, Integers
from evaluation.scoring.run_files import Ranking
from releases.snapshot.qrels import Qrels


@dataclass(frozen=True, slots=True)
class TiedGroups:
    """One query's ranking as groups of equal scores, described at each of its n ranks."""

    hits: Floats
    """(n,) the probability that the image at the rank is relevant."""
    judged: Floats
    """(n,) the probability that the image at the rank was judged."""
    sizes: Integers
    """(n,) images in the rank's group."""
    relevant: Integers
    """(n,) relevant images in the rank's group."""
    before: Integers
    """(n,) relevant images in the groups before."""
    starts: Integers
    """(n,) ranks before the group."""
    gains: Floats
    """(n,) the mean gain of the rank's group."""
    all_gains: Integers
    """The gains of every judged image of the query."""

    @classmethod
    def of(cls, ranking: Ranking | None, qrels: Qrels, query_id: int) -> TiedGroups:
        """The groups of a query's ranking; `ranking` is None where the run misses the query."""
        ids = np.zeros(0, np.int64) if ranking is None else ranking.image_ids
        scores = np.zeros(0) if ranking is None else ranking.scores
        order = np.argsort(-scores, kind="stable")
        ids, scores = ids[order], scores[order]
        firsts = np.flatnonzero(np.diff(scores, prepend=np.nan) != 0)
        sizes = np.diff(firsts, append=len(ids))
        judged, relevant = qrels.of(query_id)
        all_gains = qrels.gains_of(query_id)
        is_relevant, is_judged = np.isin(ids, judged[relevant]), np.isin(ids, judged)
        if not len(ids):
            floats, integers = np.zeros(0), np.zeros(0, np.int64)
            return cls(floats, floats, *(integers,) * 4, floats, all_gains)
        relevant_counts, judged_counts = (
            np.add.reduceat(is_relevant, firsts),
            np.add.reduceat(is_judged, firsts),
        )
        gain_sums = np.add.reduceat(qrels.gains_at(query_id, ids), firsts)
        before = np.cumsum(relevant_counts) - relevant_counts
        return cls(
            hits=np.repeat(relevant_counts / sizes, sizes),
            judged=np.repeat(judged_counts / sizes, sizes),
            sizes=np.repeat(sizes, sizes),
            relevant=np.repeat(relevant_counts, sizes),
            before=np.repeat(before, sizes),
            starts=np.repeat(firsts, sizes),
            gains=np.repeat(gain_sums / sizes, sizes),
            all_gains=all_gains,
        )

    def hits_at(self, cut: int) -> float:
        """How many relevant images are expected down to the cut-off."""
        return float(self.hits[:cut].sum())

    def precision_sum(self, cut: int) -> float:
        """The sum of precision@i x rel(i) over i <= cut."""
        # Given a relevant image at a rank, all others of its group are equally likely relevant.
        also = (self.relevant - 1) / np.maximum(self.sizes - 1, 1)
        precisions = (self.before + 1 + (self._ranks - self.starts - 1) * also) / self._ranks
        return float((self.hits * precisions)[:cut].sum())

    def first_hits(self) -> Floats:
        """(n,) the probability that the first relevant image is at each rank."""
        probabilities = np.zeros(len(self.hits))
        for rank in np.flatnonzero((self.before == 0) & (self.relevant > 0)).tolist():
            size, total = int(self.sizes[rank]), int(self.relevant[rank])
            after = size - (rank - int(self.starts[rank])) - 1
            probabilities[rank] = comb(after, total - 1) / comb(size, total)
        return probabilities

    def reciprocal_rank(self, cut: int) -> float:
        """The reciprocal rank of the first relevant image, 0 beyond the cut-off."""
        return float((self.first_hits() / self._ranks)[:cut].sum())

    def discounted_gain(self, cut: int) -> float:
        """The discounted gain down to the cut-off, over that of an ideal order."""
        [ideal] = metrics.graded_ideal_gain([self.all_gains], np.asarray(cut))
        return float((self.gains * metrics.discounts(self._ranks))[:cut].sum() / ideal)

    def rank_biased_precision(self, probabilities: Floats) -> float:
        """RBP of images that are at each rank with these probabilities (n,)."""
        return float((probabilities * metrics.rbp_weights(self._ranks)).sum())

    @property
    def _ranks(self) -> Integers:
        return np.arange(1, len(self.hits) + 1)
