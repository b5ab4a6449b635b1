"""What waits for a second opinion, and for whom; how people answered their checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from core.access import Role, at_least, role_of
from labeling.audits.release_selectors import (
    BlindQueue,
    blind_queue,
    queries_with,
    votes_on_it,
)
from labeling.judging.access import judging_problem
from labeling.judging.consensus import Vote, consensus
from labeling.judging.models import Judgment
from labeling.opinions.models import MarkedCheck, Opinion
from labeling.queries.models import Query
from retrieval.flags.selectors import is_withdrawn


def opinions_waiting() -> QuerySet[Opinion]:
    """Second opinions that nobody but who gave the first label has given, without withdrawn images.
    Of any query, in any state.
    """
    return Opinion.objects.filter(_not_given(), ~is_withdrawn("image"))


def waiting_for(user: Any) -> QuerySet[Opinion]:
    """What of `opinions_waiting` another person has labeled first, and the user's own checks that
    they haven't judged.
    """
    own = Q(~Exists(votes_on_it().filter(annotator=user)), check_for=user)
    return Opinion.objects.filter(_not_given() & ~Q(first_by=user) | own, ~is_withdrawn("image"))


def _not_given() -> Q:
    others = votes_on_it().exclude(annotator=OuterRef("first_by"))
    return Q(~Exists(others), check_for=None)


def opinion_problem(user: Any, query: Query) -> str:
    """Why the user may not give second opinions on the query; an empty string if they may: while it
    is submitted. As long as it is open, whoever labels it labels its whole list.
    """
    if at_least(user, Role.ANNOTATOR) and query.state == Query.State.SUBMITTED:
        return ""
    if query.state == Query.State.OPEN:
        return "Second opinions are asked for once the query is submitted."
    return judging_problem(user, query)


def list_problem(user: Any, query: Query) -> str:
    """Why the user may not read the query's list now; an empty string if they may. Ranks would tell
    annotators what to expect of the second opinions that wait for them. One SQL query, of a
    submitted query alone.
    """
    if role_of(user) != Role.ANNOTATOR or query.state != Query.State.SUBMITTED:
        return ""
    if not waiting_for(user).filter(query=query).exists():
        return ""
    return "Second opinions on this query wait for you. Give them first: ranks would bias them."


def opinion_queue(query: Query, user: Any) -> BlindQueue:
    """The person's queue of one query; two SQL queries."""
    offered = query.opinions.filter(Q(check_for=None) | Q(check_for=user)).exclude(first_by=user)
    return blind_queue(user, waiting=waiting_for(user).filter(query=query), offered=offered)


def queries_for_opinions(user: Any) -> list[tuple[Query, int]]:
    """The queries in which second opinions wait for the person, by query id, with how many images;
    two SQL queries.
    """
    return queries_with(user, waiting_for(user), (Query.State.SUBMITTED,))


def decided_images(query: Query) -> Iterator[tuple[int, bool, bool]]:
    """Each image that a reviewer has decided, with whether it is relevant, and whether it can be a
    check: votes differed, or a reviewer has marked it. By image id; without withdrawn images.
    """
    reviewed = Judgment.objects.filter(
        query=query, annotator__role__in=(Role.REVIEWER, Role.ADMIN)
    ).values("image")
    marked = set(MarkedCheck.objects.filter(query=query).values_list("image", flat=True))
    votes: dict[int, list[Vote]] = {}
    rows = Judgment.objects.filter(~is_withdrawn("image_id"), query=query, image__in=reviewed)
    for image_id, who, role, relevance, at in rows.order_by("image_id").values_list(
        "image_id", "annotator_id", "annotator__role", "relevance", "updated_at"
    ):
        votes.setdefault(image_id, []).append(Vote(who, role, relevance, at))
    for image_id, given in votes.items():
        agreed = consensus(given)
        if not agreed.unsure:
            disputed = len({one.relevance for one in given}) > 1
            yield image_id, agreed.relevant, disputed or image_id in marked
