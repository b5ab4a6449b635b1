"""The audits of queries for releases: what is drawn, and known positives for their auditors."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any, Final

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from core.locks import lock_key, transaction_lock
from core.sql import fetch_all
from labeling.audits.draws import KEY_BYTES, selected
from labeling.audits.models import ReleaseAudit, ReleaseKey
from labeling.audits.selectors import audit_state, images_at, pack_mask, unpack_mask
from labeling.blind.items import RANDOM, blind_item, known_images_mix
from labeling.candidates.models import Candidate
from labeling.judging.blind import RELEASE_AUDIT
from labeling.judging.models import BlindItem, Judgment, JudgmentEvent, Relevance
from labeling.judging.sources import JudgmentSource
from labeling.queries.models import Query, QueryExample
from retrieval.corpus.models import ImageWithdrawal
from retrieval.flags.selectors import is_withdrawn

_UNJUDGED: Final = f"""
SELECT c.rank, c.image_id FROM {Candidate._meta.db_table} c
 WHERE c.list_id = %(list)s AND c.rank <= %(size)s
   AND NOT EXISTS (SELECT FROM {Judgment._meta.db_table} j
                    WHERE j.query_id = %(query)s AND j.image_id = c.image_id)
   AND NOT EXISTS (SELECT FROM {ImageWithdrawal._meta.db_table} w
                    WHERE w.image_id = c.image_id AND w.restored_at IS NULL)
"""


def release_audit_ensure(*, query: Query, by: Any) -> ReleaseAudit | None:
    """Draw the query's audit for the next release, at a hand-in; the caller holds the query's lock.

    Of its list each image that nobody has judged, that isn't withdrawn and that no earlier audit of
    the query could select is selected by its number under the release's key. So each pair of query
    and image is in one audit at most, and nobody can have another one drawn that suits them better:
    a query that is reopened, labeled on and handed in again keeps its audit, and only what a new or
    a longer list adds, or what lost all its judgments, is audited besides. What is found after an
    audit counts among the found; if it was drawn, also as a hit.

    None where there is nothing new, no list, or no audit is asked for (RELEASE_AUDIT_SHARE, and
    never of a screening query).
    """
    pool = query.current_list
    asked = settings.RELEASE_AUDIT_SHARE and not query.benchmark.screening
    if not asked or pool is None or not pool.ready:
        return None
    values = {"list": pool.pk, "size": pool.size, "query": query.pk}
    ranks = {image_id: rank for rank, image_id in fetch_all(_UNJUDGED, values)}
    audits = list(populations(query))
    for image_id in chain.from_iterable(images for _, images in audits):
        ranks.pop(image_id, None)
    latest = audits[-1][0] if audits else None
    covered = latest is not None and (latest.candidate_list_id, latest.size) == (pool.pk, pool.size)
    if covered and not ranks:
        return None
    drawn_from = np.zeros(pool.size, np.bool_)
    drawn_from[[rank - 1 for rank in ranks.values()]] = True
    key = _release_key(query)
    drawn = [
        image_id
        for image_id in ranks
        if selected(bytes(key.key), query.query_id, image_id, key.share)
    ]
    audit = ReleaseAudit.objects.create(
        query=query,
        number=latest.number + 1 if latest else 1,
        release_key=key,
        candidate_list=pool,
        size=pool.size,
        drawn_from=pack_mask(drawn_from),
        unjudged=len(ranks),
        found=audit_state(query).found,
        seeds=_seeds_due(query) if drawn else 0,
        drawn_by=by,
    )
    BlindItem.objects.bulk_create(
        blind_item(RELEASE_AUDIT, query=query, audit=audit, image_id=image_id) for image_id in drawn
    )
    return audit


def populations(query: Query) -> Iterator[tuple[ReleaseAudit, list[int]]]:
    """The audits of a query for releases, in order, with the images that each could select."""
    audits = query.release_audits.select_related("release_key").order_by("number")
    for audit in audits:
        yield audit, images_at(audit.candidate_list_id, unpack_mask(audit.drawn_from, audit.size))


@transaction.atomic
def release_keys_end(*, keys: Collection[bytes]) -> None:
    """End the use of keys that a release publishes: what they select can be known then."""
    transaction_lock(lock_key("release_key"))
    now = timezone.now()
    published = ReleaseKey.objects.filter(key__in=keys)
    published.filter(ended_at=None).update(ended_at=now)
    BlindItem.objects.filter(
        audit__release_key__in=published, only_for=None, displayed_at=None
    ).update(displayed_at=now)


def _release_key(query: Query) -> ReleaseKey:
    """The key in use in the query's benchmark, made where there is none: a release of another
    benchmark publishes that one's.
    """
    transaction_lock(lock_key("release_key"))
    used = ReleaseAudit.objects.filter(release_key=OuterRef("pk"))
    of_benchmark = Exists(used.filter(query__benchmark=query.benchmark_id))
    key = ReleaseKey.objects.filter(of_benchmark, ended_at=None).first()
    return key or ReleaseKey.objects.create(
        key=secrets.token_bytes(KEY_BYTES), share=settings.RELEASE_AUDIT_SHARE
    )


def _seeds_due(query: Query) -> int:
    """The query's part of RELEASE_AUDIT_SEEDS, which the queries of the next release share; a
    fraction is rounded by chance.
    """
    published = ReleaseAudit.objects.filter(
        query=OuterRef("pk"), release_key__ended_at__isnull=False
    )
    queries = (
        Query.objects.exclude(state__in=(Query.State.DRAFT, Query.State.REJECTED))
        .exclude(pk=query.pk)
        .filter(~Exists(published), benchmark=query.benchmark_id)
    )
    return int(settings.RELEASE_AUDIT_SEEDS / (queries.count() + 1) + RANDOM.random())


def seeds_mix(query: Query, annotator: Any) -> None:
    """Make seeds for the person where the query's audits are due any, among what isn't shown:
    relevant images that others have found, and that the person has not judged.
    """
    for audit in query.release_audits.all():
        drawn = audit.draws.filter(only_for=None)
        due = audit.seeds - audit.draws.exclude(only_for=None).count()
        if due > 0 and drawn.filter(displayed_at=None).exists():
            answers = dict.fromkeys(_positives_unseen(query, annotator), Relevance.RELEVANT)
            known_images_mix(
                RELEASE_AUDIT, query, annotator, answers=answers, count=due, audit=audit
            )


def _positives_unseen(query: Query, annotator: Any) -> list[int]:
    """Images of the list that others agree on as relevant, without those that the person has ever
    judged, that anybody was shown in an audit, or that the guidelines show.
    """
    votes = Judgment.objects.filter(query=query, image=OuterRef("image"))
    seen = (
        JudgmentEvent.objects.filter(query=query, image=OuterRef("image"), annotator=annotator),
        QueryExample.objects.filter(query=query, image=OuterRef("image")),
        query.blind_items.filter(kind=RELEASE_AUDIT.name, image=OuterRef("image")),
        query.draws.filter(image=OuterRef("image")),
        votes.exclude(relevance=Relevance.RELEVANT),
        # Chosen by somebody, perhaps for how easily they are recognized.
        votes.filter(source=JudgmentSource.PICKED),
    )
    known = Candidate.objects.filter(list=query.current_list_id).filter(
        Exists(votes), ~is_withdrawn("image"), *(~Exists(rows) for rows in seen)
    )
    return list(known.order_by("rank").values_list("image", flat=True))
