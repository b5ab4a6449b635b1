"""A person's part in a query: who still labels, handing in, and resuming."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth import get_user_model
from django.utils import timezone

from core.access import Role
from labeling.audits.hand_in import hand_in_state
from labeling.judging.access import own_assignment
from labeling.judging.models import Judgment, JudgmentSource
from labeling.judging.progress import progress
from labeling.queries.models import Assignment, Query
from labeling.queries.transitions import TransitionRefused

_ELSEWHERE: Final = (
    *(JudgmentSource.IMPORT, JudgmentSource.AUDIT, JudgmentSource.SECOND, JudgmentSource.RUN),
)


def still_labeling(query: Query) -> list[str]:
    """The usernames, in order, of annotators who judged for an open query and haven't handed in.

    Imported judgments, those made in audits, second opinions, those of images that runs request,
    those that were taken back and those of reviewers don't count. Empty unless the query is open.
    """
    if query.state != Query.State.OPEN:
        return []
    judged = Judgment.objects.filter(query=query).exclude(source__in=_ELSEWHERE)
    users = get_user_model().objects.filter(
        role=Role.ANNOTATOR, is_active=True, pk__in=judged.values("annotator")
    )
    done = Assignment.objects.filter(query=query).values("annotator")
    return [user.get_username() for user in users.exclude(pk__in=done).order_by("username")]


def assignment_hand_in(
    *, query: Query, annotator: Any, reason: str = "", note: str = ""
) -> Assignment | None:
    """Hand in a person's part in an open query; None if it is handed in already.

    With a `reason` the person requests rejection, whether they have judged or not. Otherwise they
    must have judged, and the query's rule must be met by their own labels or by the consensus, or
    a `note` must say why they stop. The caller holds the query's lock. Raises TransitionRefused.
    """
    if own_assignment(annotator, query) is not None:
        return None
    rule = "" if reason else _rule_met(query, annotator, note)
    fields = {"rule": rule, "reason": reason, "note": note, "handed_in_at": timezone.now()}
    # Somebody who handed in as an annotator may give up later as a reviewer.
    return Assignment.objects.update_or_create(query=query, annotator=annotator, defaults=fields)[0]


def assignment_resume(*, query: Query, annotator: Any) -> None:
    """Undo a person's hand-in of an open query; does nothing if they haven't handed in.

    The caller holds the query's lock.
    """
    handed_in = own_assignment(annotator, query)
    if handed_in is not None:
        handed_in.delete()


def _rule_met(query: Query, annotator: Any, note: str) -> str:
    """What meets the query's rule; empty where the note replaces it. Raises TransitionRefused."""
    if not query.judgments.filter(annotator=annotator).exists():
        raise TransitionRefused("Only annotators who have judged for the query can hand it in.")
    own = hand_in_state(query, progress(query, annotator=annotator).stop)
    met_by = own.met_by or hand_in_state(query, progress(query).stop).met_by
    if met_by or note.strip():
        return met_by
    raise TransitionRefused(
        f"{own.unmet} Continue labeling, or hand in with a note that says why you stop here."
    )
