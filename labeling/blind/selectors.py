"""What people have judged blindly and are to judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists

from labeling.judging.access import queries_visible_to
from labeling.judging.blind import BlindKind, offered_to, votes_on_item, waiting_for
from labeling.queries.models import Query


@dataclass(frozen=True, slots=True)
class BlindQueue:
    """What a person has judged and is to judge of a query's images of a blind kind; those that are
    known already are among them, and nothing tells which.
    """

    judged: list[int]
    """Displayed images with a judgment of theirs, in order."""
    to_judge: list[int]
    """Displayed images that wait, in order."""
    left: int
    """How many wait, displayed or not."""


def blind_queue(kind: BlindKind, query: Query, user: Any) -> BlindQueue:
    """The person's queue of one query; two SQL queries."""
    waiting = waiting_for(user).filter(query=query, kind=kind.name)
    wait = dict(waiting.order_by("place", "pk").values_list("image", "displayed_at"))
    judged = query.blind_items.filter(
        offered_to(user),
        Exists(votes_on_item().filter(annotator=user)),
        kind=kind.name,
        displayed_at__isnull=False,
    )
    return BlindQueue(
        judged=list(judged.order_by("place", "pk").values_list("image", flat=True)),
        to_judge=[image_id for image_id, displayed_at in wait.items() if displayed_at],
        left=len(wait),
    )


def queries_waiting(kind: BlindKind, user: Any) -> list[tuple[Query, int]]:
    """The queries that the user sees and in which images of the kind wait for them, by query id,
    with how many images; at most two SQL queries.
    """
    queries = queries_visible_to(user).filter(state__in=kind.offered_in)
    images = (
        waiting_for(user)
        .filter(kind=kind.name, query__in=queries.values("pk"))
        .order_by()
        .values("query")
        .annotate(images=Count("image", distinct=True))
        .values_list("query", "images")
    )
    counts = dict(images)
    waiting = queries.filter(pk__in=counts).order_by("query_id") if counts else ()
    return [(query, counts[query.pk]) for query in waiting]
