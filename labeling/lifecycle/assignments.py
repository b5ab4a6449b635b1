"""A person's part in a query: who still labels, handing in, resuming, and what comes next."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from core.access import role_of
from labeling.audits.hand_in import hand_in_state
from labeling.judging.access import own_assignment, why_not
from labeling.judging.parts import hand_ins_missing, people_labeling
from labeling.judging.progress import progress
from labeling.queries.models import Assignment, Query
from labeling.queries.transitions import TransitionRefused, transitions_for

#: What a part has once it is handed in, and no longer once it goes on.
NOT_HANDED_IN: Any = {"handed_in_at": None, "rule": "", "reason": "", "note": ""}


def still_labeling(query: Query) -> list[str]:
    """The usernames, in order, of annotators whose part in an open query goes on: they are assigned
    or judged for it, and it is neither handed in nor paused.

    Imported judgments, those made in audits, second opinions, those of images that runs request,
    those that were taken back and those of reviewers don't count. Empty unless the query is open.
    """
    if query.state != Query.State.OPEN:
        return []
    return [user.get_username() for user in people_labeling(query)]


def transitions_open_to(user: Any, query: Query, part: Assignment | None) -> tuple[str, ...]:
    """The states that the user may ask for, whose `own_assignment` is `part`; none for an annotator
    who may not label an open query.
    """
    handed_in = part is not None and part.handed_in
    is_open = query.state == Query.State.OPEN
    if is_open and not handed_in and why_not(user, query, part=part):
        return ()
    return transitions_for(role_of(user), query.state, handed_in=handed_in)


def what_comes_next(query: Query) -> str:
    """What happens with an open or submitted query after a hand-in, in a sentence."""
    if query.state == Query.State.SUBMITTED:
        return "A reviewer now looks at disagreements and decides whether it is complete."
    labeling = len(still_labeling(query))
    # Those who label now hand in, too.
    missing = max(hand_ins_missing(query) - labeling, 0)
    waits = f"it waits for {_people(missing)} more"
    if labeling:
        others = f"{_people(labeling).capitalize()} other{'s' * (labeling > 1)} still"
        first = f"{others} label{'s' * (labeling == 1)} it" + (f", and {waits}" if missing else "")
    else:
        first = waits.capitalize()
    return f"{first}; then a reviewer looks at disagreements."


def _people(count: int) -> str:
    return {1: "one", 2: "two", 3: "three"}.get(count, str(count))


def assignment_hand_in(
    *, query: Query, annotator: Any, reason: str = "", note: str = ""
) -> Assignment | None:
    """Hand in a person's part in an open query; None if it is handed in already.

    With a `reason` the person requests rejection, whether they have judged or not. Otherwise they
    must have judged, and the query's rule must be met by their own labels, or where the query asks
    for no number of people by the consensus, or a `note` must say why they stop. The caller holds
    the query's lock. Raises TransitionRefused, also where the person may not label the query now.
    """
    part = own_assignment(annotator, query)
    if part is not None and part.handed_in:
        return None
    if problem := why_not(annotator, query, part=part):
        raise TransitionRefused(problem)
    rule = "" if reason else _rule_met(query, annotator, note)
    fields = {"rule": rule, "reason": reason, "note": note, "handed_in_at": timezone.now()}
    fields |= {"sent_back_at": None, "sent_back_note": ""}
    # Somebody who handed in as an annotator may give up later as a reviewer.
    return Assignment.objects.update_or_create(query=query, annotator=annotator, defaults=fields)[0]


def assignment_resume(*, query: Query, annotator: Any) -> None:
    """Undo a person's hand-in of an open query; does nothing if they haven't handed in.

    The caller holds the query's lock.
    """
    part = own_assignment(annotator, query)
    if part is not None and part.handed_in:
        parts_resume(query=query, annotator=annotator)


def parts_resume(*, query: Query, **which: Any) -> None:
    """Undo all hand-ins of a query, or `which`. People who weren't assigned keep their judgments
    but no row. The caller holds the query's lock.
    """
    done = query.assignments.filter(handed_in_at__isnull=False, **which)
    done.filter(assigned_at=None).delete()
    done.update(**NOT_HANDED_IN)


def _rule_met(query: Query, annotator: Any, note: str) -> str:
    """What meets the query's rule; empty where the note replaces it. Raises TransitionRefused."""
    if not query.judgments.filter(annotator=annotator).exists():
        raise TransitionRefused("Only annotators who have judged for the query can hand it in.")
    own = hand_in_state(query, progress(query, annotator=annotator).stop, annotator)
    met_by = own.met_by
    # Where people label it independently, what others have done ends nobody's part.
    if not (met_by or query.annotators_wanted):
        met_by = hand_in_state(query, progress(query).stop).met_by
    if met_by or note.strip():
        return met_by
    raise TransitionRefused(
        f"{own.unmet} Continue labeling, or hand in with a note that says why you stop here."
    )
