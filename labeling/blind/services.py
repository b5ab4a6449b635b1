"""Showing images to people who judge them blindly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from core.access import Role, role_of
from labeling.audits.services import check_count
from labeling.blind.opinions import checks_mix
from labeling.blind.release_audits import seeds_mix
from labeling.blind.selectors import BlindQueue, blind_queue
from labeling.candidates.services import lock_query
from labeling.judging.access import require_permission
from labeling.judging.blind import RELEASE_AUDIT, SECOND_OPINIONS, BlindKind, waiting_for
from labeling.judging.models import BlindItem
from labeling.queries.models import Query

_KNOWN_MIX: Final[Mapping[BlindKind, Callable[[Query, Any], None]]] = {
    RELEASE_AUDIT: seeds_mix,
    SECOND_OPINIONS: checks_mix,
}


@transaction.atomic
def blind_show(*, kind: BlindKind, query: Query, annotator: Any, count: int) -> BlindQueue:
    """Display images of a blind kind to a person, until `count` wait for them.

    Images that are known already are mixed in: seeds of a release's audits, and checks. No field
    tells them from others, and a judgment of one is stored like any: where it differs, the image is
    disputed and waits for review, and completing the query says so. Reviewers get none, as their
    judgment decides. Raises QueryGone, Forbidden where the person may not judge, ValueError as
    `check_count`.
    """
    check_count(count)
    query = lock_query(query)
    require_permission(annotator, query, kind)
    if kind in _KNOWN_MIX and role_of(annotator) == Role.ANNOTATOR:
        _KNOWN_MIX[kind](query, annotator)
    waiting = waiting_for(annotator).filter(query=query, kind=kind.name)
    first = list(waiting.order_by("place", "pk").values_list("pk", flat=True)[:count])
    BlindItem.objects.filter(pk__in=first, displayed_at=None).update(displayed_at=timezone.now())
    return blind_queue(kind, query, annotator)
