"""The best that re-ranking could make of a first stage's run: its upper bound."""

from __future__ import annotations

import numpy as np

from benchmark.qrels import Qrels
from benchmark.run_files import Ranking


def best_rerank(ranking: Ranking, *, query_id: int, qrels: Qrels, depth: int) -> Ranking:
    """The ranking with the relevant ones among its first `depth` images before the others there.

    Nothing else moves: relevant images keep their order, as do the others, and what stands beyond
    `depth` stays. Scores count down to 1, so that reading gives the same order.

    Source: Vendrow et al. 2024, table 3, "Best possible rerank".
    """
    judged, relevant = qrels.of(query_id)
    first = ranking.image_ids[:depth]
    hits = np.isin(first, judged[relevant])
    image_ids = np.concatenate([first[hits], first[~hits], ranking.image_ids[depth:]])
    return Ranking(image_ids=image_ids, scores=np.arange(len(image_ids), 0, -1, dtype=np.float64))
