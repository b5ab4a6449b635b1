"""What audits drew, as a release takes it in: a query at a time from the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from benchmark.releases.snapshot.certificates import UNANIMOUS
from benchmark.releases.snapshot.snapshot import DrawnRound, PoolImage
from labeling.audits.models import Draw, DrawRound
from labeling.audits.selectors import contested_label, unpacked
from labeling.candidates.models import Candidate
from labeling.judging.progress import consensus_on
from labeling.queries.models import Query
from retrieval.corpus.models import ImageWithdrawal


def released_audits() -> Iterator[tuple[list[DrawnRound], list[PoolImage]]]:
    """The rounds and the pool, by rank, of each completed query with rounds of its present list, by
    query id. What they say is counted as `labeling.audits.selectors.audit_state` counts it.
    """
    queries = (
        Query.objects.filter(state=Query.State.COMPLETE, draw_rounds__isnull=False)
        .select_related("current_list")
        .defer("current_list__text_vector")
        .order_by("query_id")
        .distinct()
    )
    for query in queries:
        pool = query.current_list
        if pool is None or not pool.ready:
            continue
        rounds = list(query.draw_rounds.filter(candidate_list=pool, size=pool.size))
        if rounds:
            yield (
                [
                    DrawnRound(query.query_id, one.number, bytes(one.key).hex(), pool.complete)
                    for one in rounds
                ],
                list(_pool(query, rounds)),
            )


def _pool(query: Query, rounds: list[DrawRound]) -> Iterator[PoolImage]:
    drawable = np.zeros(rounds[0].size, np.int64)
    for one in rounds:
        drawable[unpacked(one.drawn_from, one.size)] = one.number
    draws = {
        image_id: (number, place)
        for image_id, number, place in Draw.objects.filter(query=query).values_list(
            "image_id", "round__number", "place"
        )
    }
    counted = {one.number for one in rounds}
    ranked = Candidate.objects.filter(list=rounds[0].candidate_list_id, rank__lte=rounds[0].size)
    images = ranked.order_by("rank").values_list("rank", "image_id")
    labels = _labels(query)
    gone = ImageWithdrawal.objects.filter(restored_at=None, image__in=ranked.values("image"))
    withdrawn = set(gone.values_list("image", flat=True))
    for rank, image_id in images:
        number, place = draws.get(image_id, (0, 0))
        yield PoolImage(
            query_id=query.query_id,
            rank=rank,
            image_id=image_id,
            label=labels.get(image_id, ""),
            withdrawn=image_id in withdrawn,
            drawable=int(drawable[rank - 1]),
            round=number,
            place=place if number in counted else 0,
        )


def _labels(query: Query) -> dict[int, str]:
    """`PoolImage.label` of the images that have one."""
    votes: dict[int, set[str]] = defaultdict(set)
    for image_id, relevance in query.judgments.values_list("image", "relevance"):
        votes[image_id].add(relevance)
    contested = {(query.pk, one) for one, relevances in votes.items() if len(relevances) > 1}
    decided = {
        image_id: contested_label(agreed) for (_, image_id), agreed in consensus_on(contested)
    }
    return {
        one: decided.get(one) or UNANIMOUS[next(iter(relevances))]
        for one, relevances in votes.items()
    }
