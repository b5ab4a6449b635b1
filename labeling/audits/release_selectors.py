"""What is left to audit for the next release, and by whom."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from labeling.audits.models import ReleaseAudit, ReleaseDraw
from labeling.audits.selectors import images_at, unpacked
from labeling.judging.access import queries_visible_to
from labeling.judging.models import Judgment
from labeling.queries.models import Query
from retrieval.flags.selectors import is_withdrawn


@dataclass(frozen=True, slots=True)
class BlindQueue:
    """What a person has judged and is to judge of the images of a query that are shown without what
    is known of them: of the releases' audits, draws and seeds alike, or second opinions and checks.
    """

    judged: list[int]
    """Displayed images with a judgment of theirs, in order."""
    to_judge: list[int]
    """Displayed images that wait, in order."""
    left: int
    """How many wait, displayed or not."""


def waiting_for(user: Any) -> QuerySet[ReleaseDraw]:
    """What waits for a judgment of the person: draws that nobody has judged, and their own seeds;
    without withdrawn images. Of any query, in any state.
    """
    seeds = Q(seed_for=user) & ~Exists(votes_on_it().filter(annotator=user))
    return ReleaseDraw.objects.filter(_undecided() | seeds).filter(~is_withdrawn("image"))


def draws_waiting(query: Query) -> int:
    """How many draws of the query wait for anybody's judgment."""
    return query.release_draws.filter(_undecided()).filter(~is_withdrawn("image")).count()


def audit_queue(query: Query, user: Any) -> BlindQueue:
    """The person's queue of one query; two SQL queries."""
    offered = query.release_draws.filter(Q(seed_for=None) | Q(seed_for=user))
    return blind_queue(user, waiting=waiting_for(user).filter(query=query), offered=offered)


def blind_queue(user: Any, *, waiting: QuerySet[Any], offered: QuerySet[Any]) -> BlindQueue:
    """The person's queue out of the rows of one query that wait for them, and of those that they
    are or were offered: rows of an image each, with a place and `displayed_at`. Two SQL queries.
    """
    wait = dict(waiting.order_by("place", "pk").values_list("image", "displayed_at"))
    own = offered.filter(Exists(votes_on_it().filter(annotator=user)), displayed_at__isnull=False)
    return BlindQueue(
        judged=list(own.order_by("place", "pk").values_list("image", flat=True)),
        to_judge=[image_id for image_id, shown in wait.items() if shown],
        left=len(wait),
    )


def votes_on_it() -> QuerySet[Judgment]:
    """The judgments of the query and image of the row that a condition is on."""
    return Judgment.objects.filter(query=OuterRef("query"), image=OuterRef("image"))


def _undecided() -> Q:
    return Q(~Exists(votes_on_it()), seed_for=None)


def queries_to_audit(user: Any) -> list[tuple[Query, int]]:
    """The queries in which something waits for the person, who may judge it, by query id, with how
    many images; two SQL queries.
    """
    return queries_with(user, waiting_for(user), (Query.State.OPEN, Query.State.SUBMITTED))


def queries_with(
    user: Any, waiting: QuerySet[Any], states: Collection[str]
) -> list[tuple[Query, int]]:
    """The queries in these states that the user sees and that have rows, by query id, with how many
    images those are; at most two SQL queries.
    """
    queries = queries_visible_to(user).filter(state__in=states)
    images = (
        waiting.filter(query__in=queries.values("pk"))
        .order_by()
        .values("query")
        .annotate(images=Count("image", distinct=True))
        .values_list("query", "images")
    )
    counts = dict(images)
    found = queries.filter(pk__in=counts).order_by("query_id") if counts else ()
    return [(query, counts[query.pk]) for query in found]


def populations(query: Query) -> Iterator[tuple[ReleaseAudit, list[int]]]:
    """The audits of a query for releases, in order, with the images that each could select."""
    audits = query.release_audits.select_related("release_key").order_by("number")
    for audit in audits:
        yield audit, images_at(audit.candidate_list_id, unpacked(audit.drawn_from, audit.size))
