"""Who labels a query: reviewers assign people, and pause, hand over and send back their parts.

Every service takes the query's lock, and does nothing where things are so already.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from core.access import Role
from core.errors import Conflict
from labeling.candidates.services import lock_query
from labeling.judging.parts import people_labeling
from labeling.lifecycle.assignments import NOT_HANDED_IN
from labeling.lifecycle.mail import mail_assigned, mail_sent_back
from labeling.lifecycle.services import query_submit_if_done
from labeling.queries.models import Assignment, Query, QueryTransition

MOST_WANTED: Final = 100


def assignable(query: Query) -> QuerySet[Any]:
    """The people to whom a query can be assigned, by name: annotators of its benchmark."""
    people = get_user_model().objects.filter(role=Role.ANNOTATOR, is_active=True)
    members = query.benchmark.people.all()
    if members.exists():
        people = people.filter(pk__in=members.values("pk"))
    return people.order_by("username")


@transaction.atomic
def team_set(
    *, query: Query, people: Collection[Any], wanted: int, assigned_only: bool, by: Any
) -> Query:
    """Assign exactly these people, and say how many are wanted and whether only they label it.

    Others who began without being assigned go on, and so do those of `people` whose part is paused;
    paused parts of others and parts that are handed in stay so. Raises Conflict for a query that is
    neither a draft nor open and for somebody who isn't `assignable`, ValueError for a number
    outside 0 to MOST_WANTED.
    """
    if not 0 <= wanted <= MOST_WANTED:
        raise ValueError(f"wanted must be 0 to {MOST_WANTED}: {wanted}")
    query = _lock_in_state(query, Query.State.DRAFT, Query.State.OPEN)
    query.annotators_wanted, query.assigned_only = wanted, assigned_only
    query.save(update_fields=["annotators_wanted", "assigned_only", "updated_at"])
    others = query.assignments.exclude(annotator__in=people)
    others.filter(handed_in_at=None, paused_at=None).delete()
    others.filter(handed_in_at__isnull=False).update(assigned_at=None)
    for person in people:
        _assign(query, person)
    query_submit_if_done(query=query, by=by)
    return query


@transaction.atomic
def part_pause(*, query: Query, person: Any, by: Any) -> None:
    """Keep a person from judging until their part is resumed, and the query from waiting for them.

    Raises Conflict where the query isn't open or the person has no part that goes on.
    """
    query = lock_query(query)
    if query.assignments.filter(annotator=person, paused_at__isnull=False).exists():
        return  # which may have submitted the query
    query = _lock_in_state(query, Query.State.OPEN)
    _pause(query, person)
    query_submit_if_done(query=query, by=by)


@transaction.atomic
def part_resume(*, query: Query, person: Any, by: Any) -> None:
    """Let a person whose part is paused go on. Raises Conflict where the query isn't open."""
    query = _lock_in_state(query, Query.State.OPEN)
    query.assignments.filter(annotator=person).update(paused_at=None)


@transaction.atomic
def part_hand_over(*, query: Query, person: Any, to: Any, by: Any) -> None:
    """Pause a person's part and assign another one; judgments stay those of who made them.

    Raises Conflict as `part_pause`, and where both are the same or the other isn't `assignable`.
    """
    if person.pk == to.pk:
        raise Conflict("Choose another person to take it over.")
    query = _lock_in_state(query, Query.State.OPEN)
    _pause(query, person)
    _assign(query, to)
    query_submit_if_done(query=query, by=by)


@transaction.atomic
def part_send_back(*, query: Query, person: Any, note: str, by: Any) -> None:
    """Ask a person who handed in to go on, with a note that says what is missing. A submitted query
    is open again then, with the parts of the others handed in as they were.

    Raises Conflict where the query is neither open nor submitted, without a note, and where the
    person hasn't handed in.
    """
    query = _lock_in_state(query, Query.State.OPEN, Query.State.SUBMITTED)
    note = note.replace("\0", "").strip()
    if not note:
        raise Conflict("Write a note that says what is missing.")
    part = query.assignments.filter(annotator=person).first()
    if part is not None and part.state == "sent back":
        return
    if part is None or not part.handed_in or person.role != Role.ANNOTATOR:
        raise Conflict(f"{person.get_username()} hasn't handed in.")
    now = timezone.now()
    query.assignments.filter(pk=part.pk).update(
        **NOT_HANDED_IN,
        sent_back_at=now,
        sent_back_note=note,
        assigned_at=part.assigned_at or now,
        paused_at=None,
    )
    if query.state == Query.State.SUBMITTED:
        QueryTransition.objects.create(
            query=query,
            from_state=query.state,
            to_state=Query.State.OPEN,
            note=note,
            made_by=by,
        )
        query.state = Query.State.OPEN
        query.save(update_fields=["state", "updated_at"])
    mail_sent_back(query=query, person=person, note=note)


def _lock_in_state(query: Query, *states: str) -> Query:
    """The query, locked. Raises Conflict unless it is in one of the states."""
    query = lock_query(query)
    if query.state not in states:
        state = query.get_state_display().lower()
        raise Conflict(f"The query is {state}, so its parts can't be changed so now.")
    return query


def _assign(query: Query, person: Any) -> None:
    """Assign a person who isn't yet, and go on with a part that was paused. Raises Conflict."""
    if not assignable(query).filter(pk=person.pk).exists():
        raise Conflict(f"{person.get_username()} is no annotator of this benchmark.")
    part, _ = Assignment.objects.get_or_create(query=query, annotator=person)
    if part.assigned_at is not None and part.paused_at is None:
        return
    now = timezone.now()
    query.assignments.filter(pk=part.pk).update(assigned_at=part.assigned_at or now, paused_at=None)
    if query.state == Query.State.OPEN and not part.handed_in:
        mail_assigned(query=query, people=[person.pk])


def _pause(query: Query, person: Any) -> None:
    """Pause the part of a person, which is an assigned one from now on."""
    now = timezone.now()
    part = query.assignments.filter(annotator=person).first()
    if part is not None and part.state == "paused":
        return
    if not people_labeling(query).filter(pk=person.pk).exists():
        raise Conflict(f"{person.get_username()} doesn't label this query now.")
    fields = {"paused_at": now, "assigned_at": (part and part.assigned_at) or now}
    Assignment.objects.update_or_create(query=query, annotator=person, defaults=fields)
