"""What of a query can be labeled again: its judged images, in the frozen order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.errors import Conflict
from extras.simulation.core import Pool
from labeling.candidates.selectors import candidate_ranks
from labeling.judging.consensus import consensus_by_key
from labeling.judging.models import Judgment
from labeling.judging.progress import minimum_labels, progress, votes_of
from labeling.queries.models import Query
from retrieval.embedding.models import EmbeddingModel
from retrieval.flags.selectors import is_withdrawn
from retrieval.ranking.selectors import image_vectors


class SimulationRefused(Conflict):
    """A query can't be simulated; the text says why, for people."""


@dataclass(frozen=True, eq=False, slots=True)
class JudgedPool:
    """The judged images of a query, and how much of its list they are."""

    query_id: int
    query_text: str
    pool: Pool
    listed: int
    """Images of the candidate list."""
    left_out: int
    """Judged images outside the list or without an embedding now."""
    exhausted: bool
    """Whether the whole of its filter was judged, so that nothing relevant is unknown."""

    @property
    def about(self) -> dict[str, Any]:
        """What was simulated, for JSON; `world` in words."""
        images = len(self.pool.relevant)
        if self.exhausted:
            world = f"All {images:,} embedded images of the filter were judged."
        else:
            world = (
                f"Closed world: the {images:,} judged images of a list of {self.listed:,}. The "
                "others are left out, since what was not judged is not known to be not relevant; "
                "so recall is that of what the judgments found."
            )
        if self.left_out:
            world += f" {self.left_out:,} judged images outside it or not embedded are left out."
        return {
            "query_id": self.query_id,
            "query_text": self.query_text,
            "images": images,
            "relevant": int(self.pool.relevant.sum()),
            "closed_world": not self.exhausted,
            "world": world,
        }


def query_pool(query: Query) -> JudgedPool:
    """The judged images of a completed query in the order of its present list, by their consensus
    and without withdrawn ones. SimulationRefused: it isn't complete, or has nothing to simulate.
    """
    current = query.current_list
    model = current.embedding_model if current else None
    vector = current.text_vector if current else None
    if query.state != Query.State.COMPLETE or not (current and model and vector is not None):
        raise SimulationRefused(
            f"Query {query.query_id} isn't complete, so nobody knows what is relevant to it."
        )
    votes = votes_of(Judgment.objects.filter(~is_withdrawn("image"), query=query))
    labels = {image_id: agreed.relevant for (_, image_id), agreed in consensus_by_key(votes)}
    ranks = candidate_ranks(query, labels)
    return judged_pool(
        query_id=query.query_id,
        query_text=query.text,
        model=model,
        text_vector=vector,
        ranked=[(image_id, labels[image_id]) for image_id in sorted(ranks, key=ranks.__getitem__)],
        minimum=minimum_labels(query),
        listed=current.size,
        judged=len(labels),
        exhausted=progress(query).stop.exhausted,
    )


def judged_pool(
    *,
    query_id: int,
    query_text: str,
    model: EmbeddingModel,
    text_vector: Sequence[float],
    ranked: Sequence[tuple[int, bool]],
    minimum: int,
    listed: int,
    judged: int,
    exhausted: bool,
) -> JudgedPool:
    """The pool of these (image id, whether it is relevant), in the frozen order; those without an
    embedding are left out. `judged` counts those outside the list too. SimulationRefused: none is
    left, or none is relevant.
    """
    embedded, vectors = image_vectors(model=model, image_ids=[image_id for image_id, _ in ranked])
    with_vector = set(embedded.tolist())
    kept = [pair for pair in ranked if pair[0] in with_vector]
    if not any(relevant for _, relevant in kept):
        raise SimulationRefused(
            f"Query {query_id} has no relevant image in its list, so there is no recall to measure."
        )
    image_ids = np.array([image_id for image_id, _ in kept], np.int64)
    pool = Pool(
        image_ids=image_ids,
        relevant=np.array([relevant for _, relevant in kept], np.bool_),
        vectors=vectors[np.searchsorted(embedded, image_ids)],
        text=np.array(text_vector, np.float16),
        minimum=minimum,
    )
    left_out = judged - len(kept)
    return JudgedPool(query_id, query_text, pool, listed, left_out, exhausted and not left_out)
