"""Who sees which query, and who may judge for it."""

from __future__ import annotations

from enum import Enum, auto
from types import EllipsisType
from typing import Any, Final

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.http import Http404

from core.access import Role, at_least, role_of
from core.errors import Forbidden, QueryGone
from core.registries import QUERY_TASKS
from core.sql import fetch_all
from labeling.judging.blind import (
    BLIND_KINDS,
    SECOND_OPINIONS,
    BlindKind,
    waiting_for,
    waiting_for_anybody,
)
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.judging.parts import closed_to
from labeling.queries.benchmarks import benchmarks_of
from labeling.queries.models import Assignment, Benchmark, Query, QueryTransition


def queries_visible_to(user: Any) -> QuerySet[Query]:
    """The queries that exist for the user.

    Reviewers and admins see all; annotators, of their benchmarks, the open ones (those for assigned
    people only if they are assigned), those that they have judged for or handed in, those in which
    images wait to be judged blindly (`BlindKind.visible_in`), and those of extras (`QUERY_TASKS`);
    nobody else any.
    """
    queries = Query.objects.all()
    if at_least(user, Role.REVIEWER):
        return queries
    if not at_least(user, Role.ANNOTATOR):
        return queries.none()
    # Events, not judgments: annotators who took all of theirs back have still judged.
    judged = JudgmentEvent.objects.filter(query=OuterRef("pk"), annotator=user)
    handed_in = QueryTransition.objects.filter(query=OuterRef("pk"), made_by=user)
    blind = waiting_for_anybody().filter(query=OuterRef("pk")).exclude(not_for=user)
    assigned = Assignment.objects.filter(query=OuterRef("pk"), annotator=user)
    to_label = Q(state=Query.State.OPEN) & (Q(assigned_only=False) | Exists(assigned))
    own = to_label | Exists(judged) | Exists(handed_in)
    every = Q(own)
    for kind in BLIND_KINDS:
        every |= Q(Exists(blind.filter(kind=kind.name)), state__in=kind.visible_in)
    for task in QUERY_TASKS:
        every |= task.queries()
    return queries.filter(every, benchmark__in=benchmarks_of(user))


def sees_query(user: Any, query: Query) -> bool:
    """Whether a query that was just read, of a benchmark that the user takes part in, exists for
    them; one open to all takes no SQL.
    """
    open_to_all = query.state == Query.State.OPEN and not query.assigned_only
    if at_least(user, Role.REVIEWER) or (open_to_all and at_least(user, Role.ANNOTATOR)):
        return True
    return queries_visible_to(user).filter(pk=query.pk).exists()


def part_of(user: Any, query: Query) -> Assignment | None:
    """As `own_assignment`, of a query whose benchmark is among the user's (`benchmarks_of`); raises
    QueryGone for one of others.
    """
    if role_of(user) != Role.ANNOTATOR:
        return None
    # Most have no row. Django's ORM would take a sixth of the time of storing a judgment for these.
    values = {"user": user.pk, "query": query.pk, "benchmark": query.benchmark_id}
    [(people, included, parts)] = fetch_all(_PART, values)
    if people and not included:
        raise QueryGone("The query is of a benchmark that isn’t open to you.")
    return own_assignment(user, query) if parts else None


_PART: Final = f"""
SELECT count(*), count(*) FILTER (WHERE user_id = %(user)s),
       (SELECT count(*) FROM {Assignment._meta.db_table}
         WHERE query_id = %(query)s AND annotator_id = %(user)s)
  FROM {Benchmark.people.through._meta.db_table} WHERE benchmark_id = %(benchmark)s
"""


def get_query_for(user: Any, query_pk: int) -> Query:
    """The query with its list, or Http404 for one that doesn't exist for the user. One SQL query
    for one that is open to all.
    """
    query = _with_list(query_pk).filter(benchmark__in=benchmarks_of(user)).first()
    if query is None or not sees_query(user, query):
        raise query_unknown()
    return query


def query_and_part(user: Any, query_pk: int) -> tuple[Query, Assignment | None]:
    """As `get_query_for`, and `own_assignment`, in less time."""
    try:
        query = _with_list(query_pk).get()
        part = part_of(user, query)
    except (Query.DoesNotExist, QueryGone):
        raise query_unknown() from None
    if not sees_query(user, query):
        raise query_unknown()
    return query, part


def _with_list(query_pk: int) -> QuerySet[Query]:
    return (
        Query.objects.filter(pk=query_pk)
        .select_related("benchmark", "current_list__embedding_model", "current_list__job")
        .defer("current_list__text_vector")
    )


def query_unknown() -> Http404:
    """The error for a query that doesn't exist, or not for this person."""
    return Http404("There is no such query.")


def own_assignment(user: Any, query: Query) -> Assignment | None:
    """The user's part in the query, in whatever state; None where they have no row, and for
    reviewers and admins, who can judge as long as the query can be judged at all.
    """
    if role_of(user) != Role.ANNOTATOR:
        return None
    return Assignment.objects.filter(query=query, annotator=user).first()


class Act(Enum):
    """What a person does with a query that they see, beside judging it blindly (`BlindKind`)."""

    JUDGE = auto()
    READ_LIST = auto()
    CORRECT = auto()
    """To decide on images that somebody has judged, also once the query is complete."""


def why_not(
    user: Any,
    query: Query,
    act: Act | BlindKind = Act.JUDGE,
    *,
    part: Assignment | EllipsisType | None = ...,
    closed: bool | None = None,
) -> str:
    """Why the user may not do this now; an empty string if they may.

    Judging goes on until one's hand-in, for reviewers until the query is decided, and judging
    blindly as long as its kind says. `part` is `own_assignment`, and `closed` whether the query is
    among `parts.closed_to`. What isn't given takes an SQL query, `closed` only for an annotator
    without a part.
    """
    if act is Act.READ_LIST:
        return _why_not_read_list(user, query)
    if act is Act.CORRECT:
        return _why_not_correct(user, query)
    if isinstance(act, BlindKind) and at_least(user, Role.ANNOTATOR):
        if query.state in act.offered_in:
            return ""
        if query.state == Query.State.OPEN:
            return f"{act.title}: images are shown once the query is submitted."
    if role_of(user) is None:
        return "Log in to judge."
    if not at_least(user, Role.ANNOTATOR):
        return "Researchers don't judge: they evaluate runs on what others have judged."
    if query.state == Query.State.OPEN:
        if at_least(user, Role.REVIEWER):
            return ""
        part = own_assignment(user, query) if isinstance(part, EllipsisType) else part
        if part is None:
            closed = bool(closed_to(user, [query])) if closed is None else closed
            return _CLOSED[query.assigned_only] if closed else ""
        if part.handed_in:
            return _HANDED_IN
        return _PAUSED if part.paused_at else ""
    if query.state == Query.State.SUBMITTED and at_least(user, Role.REVIEWER):
        return ""
    return f"The query is {query.get_state_display().lower()}, so it can't be labeled now."


_HANDED_IN: Final = (
    "You have handed in your part of this query. Resume it on the query's page to continue."
)
_PAUSED: Final = "A reviewer has paused your part of this query."
_CLOSED: Final = {
    False: "Enough people label this query already.",
    True: "Only the people who are assigned to this query label it.",
}


def _why_not_read_list(user: Any, query: Query) -> str:
    """Ranks would tell annotators what to expect of the second opinions that wait for them. One SQL
    query, of a submitted query alone.
    """
    if role_of(user) != Role.ANNOTATOR or query.state != Query.State.SUBMITTED:
        return ""
    if not waiting_for(user).filter(query=query, kind=SECOND_OPINIONS.name).exists():
        return ""
    return "Second opinions on this query wait for you. Give them first: ranks would bias them."


def _why_not_correct(user: Any, query: Query) -> str:
    if not at_least(user, Role.REVIEWER):
        return "Only reviewers correct labels."
    if query.state in (Query.State.OPEN, Query.State.SUBMITTED, Query.State.COMPLETE):
        return ""
    return f"The query is {query.get_state_display().lower()}, so its labels can't be corrected."


def require_permission(user: Any, query: Query, act: Act | BlindKind = Act.JUDGE) -> None:
    """Raise Forbidden with `why_not`, unless the user may do this now."""
    if problem := why_not(user, query, act):
        raise Forbidden(problem)


def counted_for(user: Any) -> Any:
    """Whose judgments the figures over a query count that a person reads: an annotator's own, since
    figures over all would tell what others have said; None, which is everybody's, for reviewers.
    """
    return None if at_least(user, Role.REVIEWER) else user


def judgments_visible_to(user: Any, query: Query) -> QuerySet[Judgment]:
    """The current judgments, by rank, of a query that the user sees: all for reviewers, annotators'
    own.
    """
    judgments = Judgment.objects.filter(query=query).select_related("annotator")
    if not at_least(user, Role.REVIEWER):
        judgments = judgments.filter(annotator=user)
    return judgments.order_by(F("rank").asc(nulls_last=True), "image_id", "annotator_id")


def judgment_history(query: Query, image_id: int, user: Any) -> QuerySet[JudgmentEvent]:
    """The judgment events of an image for a query that the user sees, in order; an annotator sees
    their own.
    """
    events = JudgmentEvent.objects.filter(query=query, image=image_id)
    if not at_least(user, Role.REVIEWER):
        events = events.filter(annotator=user)
    return (
        events.select_related("annotator", "revision").defer("revision__direction").order_by("pk")
    )
