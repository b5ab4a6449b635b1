"""Retrieval measures, for any number of rankings and cut-offs at once.

`hits` is the relevance of retrieved images, best first: truth values of shape (..., n), one
ranking in each row of n, or `HitRanks` made of them once for several measures. `totals` (...) holds
R, how many images are relevant in all, from 1. `k` is one cut-off, of shape (), or several, (c,).
Each function returns float64 of shape (...), or (..., c) for several cut-offs, from 0 to 1.

Relevance is binary, except in the functions `graded_…`, which take gains, whole numbers from 0.

A run that retrieves fewer than k images is scored at k nevertheless: those it lacks count as not
relevant. ValueError: k < 1, R < 1, or more hits than R.

`evaluation.scoring.measures` has the source of each measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Cutoffs = int | npt.ArrayLike

#: RBP's persistence, the probability that a reader goes on to the next image: ir-measures'
#: RBP(p=0.9).
PERSISTENCE: Final = 0.9
#: ERR's highest grade, as in gdeval (and so in ir-measures): TREC's scale.
HIGHEST_GRADE: Final = 4
#: ERR's probability that a relevant image, of grade 1, satisfies a reader: (2^1 - 1) / 2^4.
SATISFACTION: Final = 1 / 2**HIGHEST_GRADE
Number = TypeVar("Number", bound=np.number)
#: A cut-off beyond every rank.
DEEPEST: Final = np.iinfo(np.int64).max
_NO_LIMIT: Final = np.asarray(DEEPEST)


@dataclass(frozen=True, slots=True)
class HitRanks:
    """The ranks of hits in rankings; h hits in all, those of one ranking side by side."""

    shape: tuple[int, ...]
    """The shape of the rankings."""
    rows: Integers
    """(h,) the ranking's index in `shape`, flattened in C order."""
    ranks: Integers
    """(h,) from 1, ascending within a ranking."""
    numbers: Integers
    """(h,) the ordinal of the hit in its ranking, from 1."""

    @classmethod
    def of(cls, hits: npt.ArrayLike) -> HitRanks:
        """The ranks of the hits among truth values (..., n), best first."""
        table = np.asarray(hits).astype(bool, copy=False)
        if table.ndim == 0:
            raise ValueError("A ranking is a list of truth values.")
        flat = table.reshape(-1, table.shape[-1]) if table.size else np.zeros((0, 1), bool)
        rows, columns = np.nonzero(flat)
        return cls.at(table.shape[:-1], rows, columns + 1)

    @classmethod
    def at(cls, shape: tuple[int, ...], rows: Integers, ranks: Integers) -> HitRanks:
        """Hits of rows and ranks that are in order."""
        firsts = np.flatnonzero(np.diff(rows, prepend=-1))
        lengths = np.diff(firsts, append=len(rows))
        numbers = np.arange(1, len(rows) + 1) - np.repeat(firsts, lengths)
        return cls(shape, rows, ranks, numbers)

    def sums(self, limits: Integers, weights: Floats | None = None) -> Floats:
        """The sum of the weights (h,) of each ranking's hits down to a rank; without weights, their
        number.

        `limits` has the shape () or `self.shape`; the result has `self.shape`. Adds from the first
        hit on, so that a sum doesn't depend on what else is computed.
        """
        inside = self.ranks <= (limits if limits.ndim == 0 else limits.reshape(-1)[self.rows])
        return self._summed(self.rows[inside], None if weights is None else weights[inside])

    def sums_at(self, cuts: Integers, weights: Floats | None = None) -> Floats:
        """As `sums`, down to each of the cut-offs, () or (c,): of shape (...) or (..., c)."""
        if cuts.ndim == 0:
            return self.sums(cuts, weights)
        table = np.zeros((*self.shape, len(cuts)))
        rows, ranks = self.rows, self.ranks
        # From the deepest cut-off up, so that each has a part of the hits before.
        for column in np.argsort(-cuts):
            inside = ranks <= cuts[column]
            rows, ranks = rows[inside], ranks[inside]
            weights = None if weights is None else weights[inside]
            table[..., column] = self._summed(rows, weights)
        return table

    def _summed(self, rows: Integers, weights: Floats | None) -> Floats:
        size = int(np.prod(self.shape, dtype=np.int64))
        sums = np.bincount(rows, weights, minlength=size)
        return sums.astype(np.float64, copy=False).reshape(self.shape)


Hits = HitRanks | npt.ArrayLike


def precision_at_k(hits: Hits, k: Cutoffs) -> Floats:
    """Relevant images among the first k, over k."""
    cuts = cutoffs(k)
    return _ranks(hits).sums_at(cuts) / cuts


def recall_at_k(hits: Hits, totals: npt.ArrayLike, k: Cutoffs) -> Floats:
    """Relevant images among the first k, over all R relevant ones."""
    cuts = cutoffs(k)
    hit_ranks, relevant = _ranks_and_totals(hits, totals)
    return hit_ranks.sums_at(cuts) / per_cut(relevant, cuts)


def capped_recall_at_k(hits: Hits, totals: npt.ArrayLike, k: Cutoffs) -> Floats:
    """Relevant images among the first k, over min(k, R), the most that could be there."""
    cuts = cutoffs(k)
    hit_ranks, relevant = _ranks_and_totals(hits, totals)
    return hit_ranks.sums_at(cuts) / np.minimum(per_cut(relevant, cuts), cuts)


def average_precision_at_k(hits: Hits, totals: npt.ArrayLike, k: Cutoffs) -> Floats:
    """AP@k: the sum over i <= k of precision@i x rel(i), over min(k, R).

    With that normalization (INQUIRE's appendix G) one more relevant image among the first k always
    raises the score, and 1 can be reached.
    """
    cuts = cutoffs(k)
    hit_ranks, relevant = _ranks_and_totals(hits, totals)
    sums = hit_ranks.sums_at(cuts, hit_ranks.numbers / hit_ranks.ranks)
    return sums / np.minimum(per_cut(relevant, cuts), cuts)


def uncapped_average_precision_at_k(hits: Hits, totals: npt.ArrayLike, k: Cutoffs) -> Floats:
    """The sum over i <= k of precision@i x rel(i), over R, as trec_eval's map_cut: at most k / R
    where k < R, and it can fall when one more relevant image comes among the first k."""
    cuts = cutoffs(k)
    hit_ranks, relevant = _ranks_and_totals(hits, totals)
    return hit_ranks.sums_at(cuts, hit_ranks.numbers / hit_ranks.ranks) / per_cut(relevant, cuts)


def average_precision(hits: Hits, totals: npt.ArrayLike) -> Floats:
    """AP of the whole ranking, without a cut-off: the sum of precision@i x rel(i), over R."""
    hit_ranks, relevant = _ranks_and_totals(hits, totals)
    return hit_ranks.sums(_NO_LIMIT, hit_ranks.numbers / hit_ranks.ranks) / relevant


def ndcg_at_k(hits: Hits, totals: npt.ArrayLike, k: Cutoffs) -> Floats:
    """nDCG@k with gain 1 and discount 1 / log2(rank + 1), over that of an ideal order of all R."""
    cuts = cutoffs(k)
    hit_ranks, relevant = _ranks_and_totals(hits, totals)
    sums = hit_ranks.sums_at(cuts, discounts(hit_ranks.ranks))
    return sums / ideal_gain(relevant, cuts)


def graded_ndcg_at_k(
    hit_ranks: HitRanks, gains: Integers, all_gains: Sequence[Integers], k: Cutoffs
) -> Floats:
    """nDCG@k with the images' gains, as trec_eval computes it from grades; `gains` (h,) are those
    of the hits, `all_gains` those of every judged image of each row of shape[0], in any order."""
    cuts = cutoffs(k)
    sums = hit_ranks.sums_at(cuts, gains * discounts(hit_ranks.ranks))
    ideal = graded_ideal_gain(all_gains, cuts)
    scores: Floats = sums / ideal.reshape(
        len(all_gains), *[1] * (len(hit_ranks.shape) - 1), *cuts.shape
    )
    return scores


def reciprocal_rank_at_k(hits: Hits, k: Cutoffs) -> Floats:
    """1 / rank of the first relevant image among the first k, or 0 if none is there.

    Cut at k, as INQUIRE's MRR is: a first hit beyond k counts nothing. The mean is MRR@k.
    """
    hit_ranks = _ranks(hits)
    return hit_ranks.sums_at(cutoffs(k), np.where(hit_ranks.numbers == 1, 1 / hit_ranks.ranks, 0.0))


def success_at_k(hits: Hits, k: Cutoffs) -> Floats:
    """1 if a relevant image is among the first k, else 0: hit@k, or what captioning calls R@k."""
    hit_ranks = _ranks(hits)
    return hit_ranks.sums_at(cutoffs(k), np.where(hit_ranks.numbers == 1, 1.0, 0.0))


def expected_reciprocal_rank_at_k(hits: Hits, k: Cutoffs) -> Floats:
    """ERR@k: the mean of 1 / rank at which a reader stops, whom each relevant image satisfies with
    the probability `SATISFACTION`; 0 if none of the first k satisfies."""
    hit_ranks = _ranks(hits)
    satisfied = SATISFACTION * (1 - SATISFACTION) ** (hit_ranks.numbers - 1)
    return hit_ranks.sums_at(cutoffs(k), satisfied / hit_ranks.ranks)


def graded_expected_reciprocal_rank_at_k(
    hit_ranks: HitRanks, gains: Integers, k: Cutoffs
) -> Floats:
    """ERR@k where an image of gain g (h,) satisfies with the probability (2^g - 1) / 2^m; m is
    `HIGHEST_GRADE`, and a higher gain counts as m."""
    satisfies = (2.0 ** np.minimum(gains, HIGHEST_GRADE) - 1) / 2**HIGHEST_GRADE
    # The probability that a reader reaches an image: the product over those before it.
    reached = np.ones(len(satisfies))
    order = np.argsort(hit_ranks.numbers, kind="stable")
    for hits in np.split(order, np.flatnonzero(np.diff(hit_ranks.numbers[order])) + 1)[1:]:
        reached[hits] = reached[hits - 1] * (1 - satisfies[hits - 1])
    return hit_ranks.sums_at(cutoffs(k), reached * satisfies / hit_ranks.ranks)


def rank_biased_precision(hits: Hits) -> Floats:
    """RBP of the whole ranking: the sum of (1 - p) p^(rank - 1) over hits, with p = `PERSISTENCE`.

    Unjudged images add nothing; `rank_biased_residual` is what they could add.
    """
    hit_ranks = _ranks(hits)
    return hit_ranks.sums(_NO_LIMIT, rbp_weights(hit_ranks.ranks))


def rank_biased_residual(judged: Hits) -> Floats:
    """What RBP would gain if all unjudged images, also beyond the ranking's end, were relevant.

    `judged` (..., n) is as `hits`. The true value lies between RBP and RBP plus residual.
    """
    hit_ranks = _ranks(judged)
    return 1.0 - hit_ranks.sums(_NO_LIMIT, rbp_weights(hit_ranks.ranks))


def bpref(hits: Hits, judged: Hits, totals: npt.ArrayLike, judged_totals: npt.ArrayLike) -> Floats:
    """The mean over the R relevant images of 1 - min(n, R) / min(N, R), where n counts the judged
    non-relevant images before the image and N all of the query; 0 for an image not retrieved.

    Unjudged images are ignored. `judged` (..., n) says which images were judged, including hits,
    and `judged_totals` (...) how many. This is trec_eval's form of the measure.
    """
    hit_ranks, relevant = _ranks_and_totals(hits, totals)
    judged_ranks = _ranks(judged)
    negatives = np.broadcast_to(np.asarray(judged_totals, np.int64), hit_ranks.shape) - relevant
    depth = max(hit_ranks.ranks.max(initial=0), judged_ranks.ranks.max(initial=0)) + 1
    positions = np.searchsorted(
        judged_ranks.rows * depth + judged_ranks.ranks, hit_ranks.rows * depth + hit_ranks.ranks
    )
    negatives_before = judged_ranks.numbers[positions] - hit_ranks.numbers
    totals_of_hits = relevant.reshape(-1)[hit_ranks.rows]
    most = np.minimum(negatives.reshape(-1)[hit_ranks.rows], totals_of_hits)
    preferred = 1.0 - np.minimum(negatives_before, totals_of_hits) / np.maximum(most, 1)
    return hit_ranks.sums(_NO_LIMIT, preferred) / relevant


def r_precision(hits: Hits, totals: npt.ArrayLike) -> Floats:
    """Relevant images among the first R, over R."""
    hit_ranks, relevant = _ranks_and_totals(hits, totals)
    return hit_ranks.sums(relevant) / relevant


def average_precision_at_r(hits: Hits, totals: npt.ArrayLike) -> Floats:
    """The sum over i <= R of precision@i x rel(i), over R; its mean is mAP@R.

    Equal to AP@k at k = R.
    """
    hit_ranks, relevant = _ranks_and_totals(hits, totals)
    return hit_ranks.sums(relevant, hit_ranks.numbers / hit_ranks.ranks) / relevant


def judged_at_k(judged: Hits, k: Cutoffs) -> Floats:
    """Judged images among the first k, over k; `judged` (..., n) is as `hits`.

    Where it is low, other measures say little: unjudged images count as not relevant.
    """
    return precision_at_k(judged, k)


def cutoffs(k: Cutoffs) -> Integers:
    """Cut-offs as an array of shape () or (c,); ValueError for one below 1 or no whole number."""
    cuts = np.asarray(k)
    if cuts.ndim > 1 or not np.issubdtype(cuts.dtype, np.integer):
        raise ValueError(f"k must be a whole number or a list of them: {cuts}")
    if (cuts < 1).any():
        raise ValueError(f"k must be at least 1: {cuts}")
    return cuts.astype(np.int64)


def checked_totals(totals: npt.ArrayLike) -> Integers:
    """R of each ranking; ValueError for one below 1."""
    relevant = np.asarray(totals, dtype=np.int64)
    if (relevant < 1).any():
        raise ValueError("a query without relevant images has no score")
    return relevant


def discounts(ranks: Integers) -> Floats:
    """nDCG's weight of a hit at each rank."""
    weights: Floats = 1.0 / np.log2(ranks + 1.0)
    return weights


def rbp_weights(ranks: Integers) -> Floats:
    """RBP's weight of a hit at each rank: (1 - p) p^(rank - 1)."""
    weights: Floats = (1 - PERSISTENCE) * np.power(PERSISTENCE, ranks - 1.0, dtype=np.float64)
    return weights


def ideal_gain(totals: Integers, cuts: Integers) -> Floats:
    """(..., c): the discounted gain at each cut-off when all R relevant images come first."""
    depths = np.minimum(per_cut(totals, cuts), cuts)
    ideal = np.cumsum(discounts(np.arange(1, depths.max(initial=0) + 1)))
    gains: Floats = ideal[depths - 1]
    return gains


def graded_ideal_gain(all_gains: Sequence[Integers], cuts: Integers) -> Floats:
    """(s, c), or (s,) for one cut-off: the discounted gain when the images of the s queries are
    sorted by their gains, the largest first."""
    ideal = np.zeros((len(all_gains), *cuts.shape))
    for row, gains in enumerate(all_gains):
        best = np.sort(gains)[::-1] * discounts(np.arange(1, len(gains) + 1))
        ideal[row] = np.concatenate(([0.0], np.cumsum(best)))[np.minimum(cuts, len(gains))]
    return ideal


def per_cut(values: npt.NDArray[Number], cuts: Integers) -> npt.NDArray[Number]:
    """Values (...) of rankings, as (..., 1) if there are several cut-offs."""
    return values[..., np.newaxis] if cuts.ndim else values


def _ranks(hits: Hits) -> HitRanks:
    return hits if isinstance(hits, HitRanks) else HitRanks.of(hits)


def _ranks_and_totals(hits: Hits, totals: npt.ArrayLike) -> tuple[HitRanks, Integers]:
    hit_ranks = _ranks(hits)
    relevant = np.broadcast_to(checked_totals(totals), hit_ranks.shape)
    excess = hit_ranks.numbers > relevant.reshape(-1)[hit_ranks.rows]
    if excess.any():
        row = hit_ranks.rows[excess][0]
        message = (
            f"{hit_ranks.numbers[excess][0]} hits, but only {relevant.reshape(-1)[row]} relevant"
        )
        raise ValueError(f"{message} images")
    return hit_ranks, relevant
