"""Drawing images of a query at random, each recorded before anybody sees it."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from django.db import transaction
from django.utils import timezone

from core.errors import Conflict, QueryGone
from labeling.audits.draws import KEY_BYTES, draw_order
from labeling.audits.models import Draw, DrawKey, DrawRound
from labeling.audits.selectors import AuditState, audit_state, images_at, pack_mask
from labeling.candidates.services import lock_query
from labeling.judging.access import counted_for, require_permission
from labeling.queries.models import Query

LARGEST_DRAW = 100


def draw_key_ensure(*, query: Query) -> DrawKey:
    """The query's key, made where it has none; the caller holds the query's lock."""
    return DrawKey.objects.get_or_create(
        query=query, defaults={"key": secrets.token_bytes(KEY_BYTES)}
    )[0]


@transaction.atomic
def draw_keys_end(*, keys: Collection[bytes]) -> None:
    """End the use of keys that a release publishes: queries draw by new ones, in new rounds. Keys
    that are in no use are passed over.
    """
    for used in DrawKey.objects.filter(key__in=keys).select_related("query").order_by("query"):
        with suppress(QueryGone):
            # Draws hold this lock.
            query = lock_query(used.query)
            now = timezone.now()
            new = secrets.token_bytes(KEY_BYTES)
            DrawKey.objects.filter(query=query).update(key=new, made_at=now)
            query.draw_rounds.filter(closed_at=None).update(closed_at=now)


def check_count(count: int) -> None:
    """Raise ValueError for a number of images to display outside 1 to LARGEST_DRAW."""
    if not 1 <= count <= LARGEST_DRAW:
        raise ValueError(f"count must be 1 to {LARGEST_DRAW}: {count}")


@transaction.atomic
def audit_draw(*, query: Query, annotator: Any, count: int) -> AuditState:
    """Display drawn images to an annotator, until `count` of the pool wait for somebody's judgment,
    and return the audits with them.

    What waits already isn't drawn again, whoever it was displayed to: sent twice, a request draws
    once, and nobody can skip. A round goes on as long as what is left of it is what it could draw;
    once something of it was judged elsewhere or withdrawn, the next draw closes it and begins
    another. That this happens only here changes no count: between two draws nothing is random.
    What is returned counts the judgments that the person may know of (`counted_for`).

    Raises QueryGone, Conflict where the list isn't ready, Forbidden where the person may not judge,
    ValueError for a count outside 1 to LARGEST_DRAW.
    """
    check_count(count)
    # Judgments hold this lock shared: each is before the draw, or finds what it displayed.
    query = lock_query(query)
    require_permission(annotator, query)
    if query.current_list is None or not query.current_list.ready:
        raise Conflict("The candidate list isn't ready yet, so nothing can be drawn.")
    state = audit_state(query, counted_for(annotator))
    missing = count - len(state.to_judge)
    if missing <= 0 or not state.left.any():
        return state
    draw_round = _round(query, annotator, state)
    left = images_at(state.pool.pk, state.left)
    order = draw_order(bytes(draw_round.key), query.query_id, left)
    first = draw_round.draws.count() + 1
    Draw.objects.bulk_create(
        Draw(query=query, round=draw_round, place=place, image_id=image_id, displayed_to=annotator)
        for place, image_id in enumerate(order[:missing], start=first)
    )
    return audit_state(query, counted_for(annotator))


def _round(query: Query, annotator: Any, state: AuditState) -> DrawRound:
    """The round that the next draw belongs to."""
    if state.goes_on and state.last is not None:
        return state.last
    query.draw_rounds.filter(closed_at=None).update(closed_at=timezone.now())
    latest = query.draw_rounds.order_by("number").last()
    return DrawRound.objects.create(
        query=query,
        number=latest.number + 1 if latest else 1,
        candidate_list=state.pool,
        size=state.pool.size,
        key=draw_key_ensure(query=query).key,
        drawn_from=pack_mask(state.left),
        begun_by=annotator,
    )
