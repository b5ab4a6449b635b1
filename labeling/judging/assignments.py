"""A person's part in a query: who still labels, handing in, and resuming."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.utils import timezone

from core.access import Role
from labeling.judging.access import own_assignment
from labeling.judging.models import Judgment, JudgmentSource
from labeling.judging.progress import progress
from labeling.queries.models import Assignment, Query
from labeling.queries.transitions import TransitionRefused


def still_labeling(query: Query) -> list[str]:
    """The names of those who take part in an open query and haven't handed in, in their order; of
    no other query anybody.

    An annotator takes part while a judgment of theirs stands that they made here; an imported one
    doesn't count, and neither does a reviewer's.
    """
    if query.state != Query.State.OPEN:
        return []
    judged = Judgment.objects.filter(query=query).exclude(source=JudgmentSource.IMPORT)
    users = get_user_model().objects.filter(
        role=Role.ANNOTATOR, is_active=True, pk__in=judged.values("annotator")
    )
    done = Assignment.objects.filter(query=query).values("annotator")
    return [user.get_username() for user in users.exclude(pk__in=done).order_by("username")]


def assignment_hand_in(
    *, query: Query, annotator: Any, reason: str = "", note: str = ""
) -> Assignment | None:
    """Hand in a person's part in an open query; None if it is handed in already.

    With a `reason` the person gives the query up, having judged for it or not. Else they have, and
    a stop rule is met by their own labels or by everybody's, or a note says why to stop. The caller
    holds the query's lock. Raises TransitionRefused.
    """
    if own_assignment(annotator, query) is not None:
        return None
    rule = "" if reason else _rule_met(query, annotator, note)
    said = {"rule": rule, "reason": reason, "note": note, "handed_in_at": timezone.now()}
    # Somebody who handed in as an annotator may give up later as a reviewer.
    return Assignment.objects.update_or_create(query=query, annotator=annotator, defaults=said)[0]


def assignment_resume(*, query: Query, annotator: Any) -> None:
    """Take up a part again in a query that is still open; without one handed in, change nothing.

    The caller holds the query's lock.
    """
    handed_in = own_assignment(annotator, query)
    if handed_in is not None:
        handed_in.delete()


def _rule_met(query: Query, annotator: Any, note: str) -> str:
    """The stop rule by which a part is handed in; empty where the note stands for it."""
    if not query.judgments.filter(annotator=annotator).exists():
        raise TransitionRefused("Only who has judged for the query hands it in.")
    own = progress(query, annotator=annotator)
    for stop in (own.stop, progress(query).stop):
        if stop.met:
            return stop.rule
    if note.strip():
        return ""
    found = f"{own.streak} of {own.stop.required} negatives in a row"
    if not own.stop.minimum_met:
        found += f", {own.judged} of {own.stop.minimum} labels"
    raise TransitionRefused(
        f"The stop rule isn't met yet: {found}. "
        "Label on, or hand in with a note that says why to stop here."
    )
