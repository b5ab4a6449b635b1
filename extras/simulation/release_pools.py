"""What of a release can be labeled again: the judged images of its queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from django.conf import settings

from extras.simulation.pools import JudgedPool, SimulationRefused, judged_pool
from releases.models import Release
from releases.snapshot.snapshot import Pair, Snapshot, SnapshotQuery
from retrieval.embedding.models import EmbeddingModel


def release_pools(release: Release) -> Iterator[JudgedPool | SimulationRefused]:
    """The judged images of each query of a made release in the order of its list, by the release's
    labels; in the place of a query that can't be simulated the reason.

    SimulationRefused: the release's files are lost, or its negatives are unknown.
    """
    snapshot = Snapshot(release.snapshot_directory)
    if not snapshot.directory.is_dir():
        raise SimulationRefused(f"The files of {release} are lost.")
    if not snapshot.header.negatives_known:
        raise SimulationRefused(
            f"{release} names relevant images alone, and what was not judged is not known to be "
            "not relevant."
        )
    pairs: defaultdict[int, list[Pair]] = defaultdict(list)
    for pair in snapshot.pairs():
        pairs[pair.query_id].append(pair)
    vectors = {(row.query_id, row.model): row.vector for row in snapshot.vectors()}
    models = {model.name: model for model in EmbeddingModel.objects.all()}
    for query in snapshot.queries.values():
        vector = vectors.get((query.query_id, query.model))
        model = models.get(query.model)
        if model is None or vector is None:
            yield SimulationRefused(
                f"Query {query.query_id} has no candidate list of a model that is here."
            )
            continue
        try:
            yield _pool(query, pairs[query.query_id], model, vector)
        except SimulationRefused as error:
            yield error


def _pool(
    query: SnapshotQuery, pairs: list[Pair], model: EmbeddingModel, vector: list[float]
) -> JudgedPool:
    listed = sorted((pair.rank, pair) for pair in pairs if pair.rank is not None)
    return judged_pool(
        query_id=query.query_id,
        query_text=query.text,
        model=model,
        text_vector=vector,
        ranked=[(pair.image_id, pair.relevant) for _, pair in listed],
        minimum=0 if query.species else settings.MINIMUM_LABELS,
        listed=query.list_size,
        judged=len(pairs),
        exhausted=len(listed) == query.list_size == query.list_total,
    )
