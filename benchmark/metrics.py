"""Retrieval measures at a cut-off k, for binary relevance.

Each function takes `relevant_in_order`, the relevance of one query's retrieved images, best first
(any sequence of truth values; what stands beyond k is not looked at), and gives a number from 0 to
1. The declared k counts, also for a run that retrieves fewer images: those it lacks are not
relevant.

Source: Vendrow et al. 2024, section 5 and appendix G, and the metrics of its evaluation code.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Relevances = Sequence[bool] | Sequence[int] | npt.NDArray[np.generic]


def precision_at_k(relevant_in_order: Relevances, k: int) -> float:
    """Relevant images among the first k, over k. ValueError: k < 1."""
    return float(_hits(relevant_in_order, k).sum()) / k


def recall_at_k(relevant_in_order: Relevances, k: int, total_relevant: int) -> float:
    """Relevant images among the first k, over all R relevant ones.

    ValueError: k < 1, R < 1, or more hits than R.
    """
    hits = _hits(relevant_in_order, k)
    _check_total(hits, total_relevant)
    return float(hits.sum()) / total_relevant


def average_precision_at_k(relevant_in_order: Relevances, k: int, total_relevant: int) -> float:
    """AP@k: the sum over i <= k of precision@i x rel(i), over min(k, R).

    With that normalisation (INQUIRE's appendix G) one more relevant image among the first k always
    raises the score, and 1 can be reached. ValueError: k < 1, R < 1, or more hits than R.
    """
    hits = _hits(relevant_in_order, k)
    _check_total(hits, total_relevant)
    ranks = np.flatnonzero(hits) + 1
    precisions = np.arange(1, ranks.size + 1) / ranks
    return float(precisions.sum()) / min(k, total_relevant)


def ndcg_at_k(relevant_in_order: Relevances, k: int, total_relevant: int) -> float:
    """nDCG@k with gain 1 and discount 1 / log2(rank + 1), over that of an ideal order of all R.

    Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", 2002, in
    the form with log2(rank + 1). ValueError: k < 1, R < 1, or more hits than R.
    """
    hits = _hits(relevant_in_order, k)
    _check_total(hits, total_relevant)
    ideal = _discounts(np.arange(1, min(k, total_relevant) + 1)).sum()
    return float(_discounts(np.flatnonzero(hits) + 1).sum() / ideal)


def reciprocal_rank_at_k(relevant_in_order: Relevances, k: int) -> float:
    """1 / rank of the first relevant image among the first k, or 0 if none is there.

    Cut at k, as INQUIRE's MRR is: a first hit beyond k counts nothing. ValueError: k < 1.
    """
    ranks = np.flatnonzero(_hits(relevant_in_order, k))
    return 1.0 / float(ranks[0] + 1) if ranks.size else 0.0


def random_average_precision_at_k(k: int, total_relevant: int, corpus_size: int) -> float:
    """The expected AP@k of a uniformly random order of the whole corpus, exactly.

    Of N images R are relevant. Rank i is relevant with probability R/N, and each of the i - 1
    before it then with (R-1)/(N-1), so the expectation of precision@i x rel(i) is R/N x (1 +
    (i-1)(R-1)/(N-1)) / i; summed over i <= min(k, N) and divided by min(k, R). ValueError: k < 1, R
    < 1 or R > N.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1: {k}")
    if not 1 <= total_relevant <= corpus_size:
        raise ValueError(f"{total_relevant} relevant images in a corpus of {corpus_size}")
    ranks = np.arange(1, min(k, corpus_size) + 1)
    also_before = (total_relevant - 1) / (corpus_size - 1) if corpus_size > 1 else 0.0
    terms = (1 + (ranks - 1) * also_before) / ranks
    return total_relevant / corpus_size * float(terms.sum()) / min(k, total_relevant)


def _hits(relevant_in_order: Relevances, k: int) -> npt.NDArray[np.bool_]:
    """The relevance of the first k retrieved images."""
    if k < 1:
        raise ValueError(f"k must be at least 1: {k}")
    hits = np.asarray(relevant_in_order[:k])
    if hits.ndim != 1:
        raise ValueError(f"relevances must be one list, not of shape {hits.shape}")
    return hits.astype(bool)


def _check_total(hits: npt.NDArray[np.bool_], total_relevant: int) -> None:
    if total_relevant < 1:
        raise ValueError("a query without relevant images has no score")
    if int(hits.sum()) > total_relevant:
        raise ValueError(f"{int(hits.sum())} hits, but only {total_relevant} relevant images")


def _discounts(ranks: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    return 1.0 / np.log2(ranks + 1.0)
