"""Drawing the audits of releases, and showing their images to people who judge them."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from itertools import chain
from random import SystemRandom
from typing import Any, Final

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, QuerySet
from django.utils import timezone

from core.access import Role, role_of
from core.errors import Forbidden
from core.locks import lock_key, transaction_lock
from core.sql import fetch_all
from labeling.audits.draws import KEY_BYTES, selected
from labeling.audits.models import ReleaseAudit, ReleaseDraw, ReleaseKey
from labeling.audits.release_selectors import BlindQueue, audit_queue, populations, waiting_for
from labeling.audits.selectors import audit_state, packed
from labeling.audits.services import check_count
from labeling.candidates.models import Candidate
from labeling.candidates.services import lock_query
from labeling.judging.access import auditing_problem
from labeling.judging.models import Judgment, JudgmentEvent, Relevance
from labeling.queries.models import Query, QueryExample
from retrieval.corpus.models import ImageWithdrawal
from retrieval.flags.selectors import is_withdrawn

PLACES: Final = 2**62
_RANDOM: Final = SystemRandom()
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
    drawn = [one for one in ranks if selected(bytes(key.key), query.query_id, one, key.share)]
    audit = ReleaseAudit.objects.create(
        query=query,
        number=latest.number + 1 if latest else 1,
        release_key=key,
        candidate_list=pool,
        size=pool.size,
        drawn_from=packed(drawn_from),
        unjudged=len(ranks),
        found=audit_state(query).found,
        seeds=_seeds_due(query) if drawn else 0,
        drawn_by=by,
    )
    ReleaseDraw.objects.bulk_create(
        ReleaseDraw(query=query, audit=audit, image_id=one, place=_RANDOM.randrange(PLACES))
        for one in drawn
    )
    return audit


@transaction.atomic
def release_draws_show(*, query: Query, annotator: Any, count: int) -> BlindQueue:
    """Display images of the query's audits for releases to a person, until `count` wait for them.

    Seeds are mixed in blindly: relevant images that others have found, and that this person has not
    judged. Their judgment of a seed is stored like any second opinion: where it differs, the image
    is disputed and waits for review, and completing the query tells so. Reviewers get no seeds, as
    their judgment decides. Raises QueryGone, Forbidden where the person may not judge, ValueError
    as `check_count`.
    """
    check_count(count)
    query = lock_query(query)
    if problem := auditing_problem(annotator, query):
        raise Forbidden(problem)
    _seeds_mix(query, annotator)
    display_first(waiting_for(annotator).filter(query=query), count)
    return audit_queue(query, annotator)


def display_first(waiting: QuerySet[Any], count: int) -> None:
    """Note of the first `count` rows of a blind queue, by place, that they are displayed."""
    first = waiting.order_by("place", "pk")[:count]
    new = [one.pk for one in first if one.displayed_at is None]
    waiting.model._default_manager.filter(pk__in=new).update(displayed_at=timezone.now())


@transaction.atomic
def release_keys_end(*, keys: Collection[bytes]) -> None:
    """End the use of keys that a release publishes: what they select can be known then."""
    transaction_lock(lock_key("release_key"))
    now = timezone.now()
    published = ReleaseKey.objects.filter(key__in=keys)
    published.filter(ended_at=None).update(ended_at=now)
    ReleaseDraw.objects.filter(
        audit__release_key__in=published, seed_for=None, displayed_at=None
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
    return int(settings.RELEASE_AUDIT_SEEDS / (queries.count() + 1) + _RANDOM.random())


def _seeds_mix(query: Query, annotator: Any) -> None:
    """Make seeds for the person where the query's audits are due any, among what isn't shown."""
    if role_of(annotator) != Role.ANNOTATOR:
        return
    for audit in query.release_audits.all():
        draws = audit.draws.filter(seed_for=None)
        due = audit.seeds - audit.draws.exclude(seed_for=None).count()
        if due <= 0 or not draws.filter(displayed_at=None).exists():
            continue
        known = _positives_unseen(query, annotator)
        shown = audit.draws.exclude(displayed_at=None).aggregate(last=Max("place"))["last"]
        first = 0 if shown is None else shown + 1
        ReleaseDraw.objects.bulk_create(
            ReleaseDraw(
                query=query,
                audit=audit,
                image_id=image_id,
                place=_RANDOM.randrange(first, PLACES + 1),
                seed_for=annotator,
            )
            for image_id in _RANDOM.sample(known, min(due, len(known)))
        )


def _positives_unseen(query: Query, annotator: Any) -> list[int]:
    """Images of the list that others agree on as relevant, without those that the person has ever
    judged, that anybody was shown in an audit, or that the guidelines show.
    """
    votes = Judgment.objects.filter(query=query, image=OuterRef("image"))
    seen = (
        JudgmentEvent.objects.filter(query=query, image=OuterRef("image"), annotator=annotator),
        QueryExample.objects.filter(query=query, image=OuterRef("image")),
        query.release_draws.filter(image=OuterRef("image")),
        query.draws.filter(image=OuterRef("image")),
        votes.exclude(relevance=Relevance.RELEVANT),
    )
    known = Candidate.objects.filter(list=query.current_list_id).filter(
        Exists(votes), ~is_withdrawn("image"), *(~Exists(one) for one in seen)
    )
    return list(known.order_by("rank").values_list("image", flat=True))
