"""The fixed sets of the re-ranking task: which queries are fit for it.

Source: Vendrow et al. 2024, section 3, INQUIRE-Rerank: the top 100 of one model for each query,
without the queries that have none relevant among them, or too many.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from benchmark.qrels import Qrels


def is_fit(relevant: int, size: int) -> bool:
    """Whether a fixed list of `size` images with so many relevant ones is fit for re-ranking: at
    least one and at most half of them."""
    return relevant >= 1 and 2 * relevant <= size


def fit_lists(
    fixed: Mapping[int, npt.NDArray[np.int64]], qrels: Qrels
) -> dict[int, npt.NDArray[np.int64]]:
    """The fixed lists that are fit, by query id; images that nobody judged are not relevant.

    KeyError for a list of a query that `qrels` doesn't name.
    """
    fit = {}
    for query_id in sorted(fixed):
        image_ids, relevant = qrels.of(query_id)
        hits = int(np.isin(fixed[query_id], image_ids[relevant]).sum())
        if is_fit(hits, len(fixed[query_id])):
            fit[query_id] = fixed[query_id]
    return fit
