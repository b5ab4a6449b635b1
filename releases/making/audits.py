"""Audits and their draws of a release, from the database, one query at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from django.db.models import OuterRef, Q, Subquery

from labeling.audits.models import Draw, DrawRound
from labeling.audits.selectors import contested_label, unpack_mask
from labeling.blind.release_audits import populations
from labeling.candidates.models import Candidate
from labeling.judging.models import BlindItem
from labeling.judging.progress import consensus_on
from labeling.queries.models import Benchmark, Query
from releases.making.labels import complete_queries
from releases.snapshot.certificates import UNANIMOUS
from releases.snapshot.snapshot import (
    AuditedImage,
    DrawnRound,
    PoolImage,
    ReleasedAudit,
    Seed,
)
from retrieval.corpus.models import ImageWithdrawal
from retrieval.flags.selectors import is_withdrawn


def released_audits(benchmark: Benchmark) -> Iterator[tuple[list[DrawnRound], list[PoolImage]]]:
    """The rounds and the pool, by rank, of each completed query with rounds of its present list, by
    query id. `labeling.audits.selectors.audit_state` counts the same.
    """
    queries = (
        complete_queries(benchmark)
        .filter(draw_rounds__isnull=False)
        .select_related("current_list")
        .defer("current_list__text_vector")
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
                    DrawnRound(query.query_id, drawn.number, bytes(drawn.key).hex(), pool.complete)
                    for drawn in rounds
                ],
                list(_pool(query, rounds)),
            )


def _pool(query: Query, rounds: list[DrawRound]) -> Iterator[PoolImage]:
    drawable = np.zeros(rounds[0].size, np.int64)
    for drawn in rounds:
        drawable[unpack_mask(drawn.drawn_from, drawn.size)] = drawn.number
    draws = {
        image_id: (number, place)
        for image_id, number, place in Draw.objects.filter(query=query).values_list(
            "image_id", "round__number", "place"
        )
    }
    numbers = {drawn.number for drawn in rounds}
    ranked = Candidate.objects.filter(list=rounds[0].candidate_list_id, rank__lte=rounds[0].size)
    images = ranked.order_by("rank").values_list("rank", "image_id")
    labels = _labels(query)
    withdrawn = _withdrawn(ranked.values("image"))
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
            place=place if number in numbers else 0,
        )


def released_release_audits(
    benchmark: Benchmark,
) -> Iterator[tuple[list[ReleasedAudit], list[AuditedImage], list[Seed]]]:
    """The audits for releases of each query, the images that they could select, and their seeds, by
    query id. Queries that aren't completed are left out unless a draw of theirs was displayed.
    """
    shown = BlindItem.objects.filter(audit__isnull=False, displayed_at__isnull=False)
    queries = (
        Query.objects.filter(release_audits__isnull=False, benchmark=benchmark)
        .filter(Q(state=Query.State.COMPLETE) | Q(blind_items__in=shown))
        .select_related("current_list")
        .defer("current_list__text_vector")
        .order_by("query_id")
        .distinct()
    )
    for query in queries:
        yield _release_audits(query)


def _release_audits(query: Query) -> tuple[list[ReleasedAudit], list[AuditedImage], list[Seed]]:
    pool, query_id = query.current_list, query.query_id
    selectable = list(populations(query))
    last = selectable[-1][0]
    covers = (
        query.state == Query.State.COMPLETE
        and pool is not None
        and (last.candidate_list_id, last.size) == (pool.pk, pool.size)
    )
    audits = [
        ReleasedAudit(
            query_id=query_id,
            audit=audit.number,
            split=query.split,
            key=bytes(audit.release_key.key).hex(),
            share=audit.release_key.share,
            covers=covers and audit == last,
            unjudged=audit.unjudged,
            found=audit.found,
        )
        for audit, _ in selectable
    ]
    labels = _labels(query)
    audit_of = {image_id: audit.number for audit, images in selectable for image_id in images}
    if covers:
        ranked = Candidate.objects.filter(list=last.candidate_list_id, rank__lte=last.size)
        for image_id in ranked.values_list("image", flat=True):
            if image_id not in labels:
                audit_of.setdefault(image_id, 0)
    withdrawn = _withdrawn(list(audit_of))
    draws = BlindItem.objects.filter(audit__query=query, only_for=None)
    shown = dict(draws.values_list("image", "displayed_at"))
    audited = [
        AuditedImage(
            query_id=query_id,
            image_id=image_id,
            audit=number,
            drawn=image_id in shown,
            label=labels.get(image_id, "") if image_id in shown else "",
            withdrawn=image_id in withdrawn,
        )
        for image_id, number in sorted(audit_of.items())
        if image_id not in withdrawn or shown.get(image_id)
    ]
    return audits, audited, _seeds(query)


def _seeds(query: Query) -> list[Seed]:
    """The seeds that were shown, without withdrawn images."""
    own = query.judgments.filter(annotator=OuterRef("only_for"), image=OuterRef("image"))
    shown = (
        BlindItem.objects.filter(audit__query=query)
        .filter(only_for__isnull=False, displayed_at__isnull=False)
        .filter(~is_withdrawn("image"))
        .annotate(own=Subquery(own.values("relevance")))
        .order_by("image_id", "only_for_id")
        .values_list("image_id", "own")
    )
    return [Seed(query.query_id, image_id, relevance or "") for image_id, relevance in shown]


def _withdrawn(images: Any) -> set[int]:
    """Those of the images, ids or a subquery, that are withdrawn now."""
    withdrawals = ImageWithdrawal.objects.filter(restored_at=None, image__in=images)
    return set(withdrawals.values_list("image", flat=True))


def _labels(query: Query) -> dict[int, str]:
    """`PoolImage.label` of the images that have one."""
    votes: dict[int, set[str]] = defaultdict(set)
    for image_id, relevance in query.judgments.values_list("image", "relevance"):
        votes[image_id].add(relevance)
    contested = {(query.pk, image) for image, relevances in votes.items() if len(relevances) > 1}
    decided = {
        image_id: contested_label(agreed) for (_, image_id), agreed in consensus_on(contested)
    }
    return {
        image_id: decided.get(image_id) or UNANIMOUS[next(iter(relevances))]
        for image_id, relevances in votes.items()
    }
