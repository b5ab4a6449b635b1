"""Which state a query may pass into from which, and who may decide it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.errors import Conflict, Forbidden, Invalid

#: Roles from the least to the most powerful; each may do what those before it may.
ROLES: Final = ("annotator", "reviewer", "admin")
STATES: Final = ("draft", "open", "submitted", "complete", "rejected")

#: (from, to) -> the least role that may decide it.
LEAST_ROLE: Final[Mapping[tuple[str, str], str]] = {
    ("draft", "open"): "admin",
    ("open", "draft"): "admin",
    ("open", "submitted"): "annotator",
    ("open", "complete"): "reviewer",
    ("submitted", "open"): "reviewer",
    ("submitted", "complete"): "reviewer",
    ("complete", "open"): "admin",
    ("rejected", "open"): "admin",
    ("draft", "rejected"): "admin",
    ("open", "rejected"): "admin",
    ("submitted", "rejected"): "reviewer",
    ("complete", "rejected"): "admin",
}


class TransitionRefused(Conflict):
    """The change of state is refused; the message says why, for people."""


class TransitionForbidden(TransitionRefused, Forbidden):
    """The change is possible, but not for this role."""


class TransitionIncomplete(TransitionRefused, Invalid):
    """Something that the change needs is missing; `field` names it."""

    def __init__(self, field: str, *messages: str) -> None:
        Invalid.__init__(self, {field: messages})
        self.field = field
        self.messages = messages


def transitions_for(role: str | None, state: str, *, handed_in: bool = False) -> tuple[str, ...]:
    """The states into which `role` may pass a query of `state`, in the order of STATES.

    An annotator who asks for "submitted" hands in their own part, and one who has (`handed_in`)
    resumes it with "open" while the query is still open.
    """
    if role not in ROLES:
        return ()
    if handed_in and (role, state) == ("annotator", "open"):
        return ("open",)
    rank = ROLES.index(role)
    return tuple(
        to_state
        for to_state in STATES
        if (least := LEAST_ROLE.get((state, to_state))) and ROLES.index(least) <= rank
    )


def check_transition(
    *, role: str | None, from_state: str, to_state: str, reason: str, give_up: str = ""
) -> None:
    """Raise TransitionRefused (or a subclass) unless the change is allowed.

    `reason` is the code of the rejection; a rejection needs one, nothing else may have one.
    `give_up` is the code of a request to reject; only handing in may have one.
    """
    least = LEAST_ROLE.get((from_state, to_state))
    if least is None:
        known = ", ".join(to for start, to in LEAST_ROLE if start == from_state)
        raise TransitionRefused(
            f"A query that is {from_state} can't become {to_state}; it can become: {known}."
        )
    if to_state not in transitions_for(role, from_state):
        raise TransitionForbidden(
            f"Making a query that is {from_state} {to_state} needs the role {least}."
        )
    if to_state == "rejected" and not reason:
        raise TransitionIncomplete("reject_reason", "A rejection needs a reason.")
    if to_state != "rejected" and reason:
        raise TransitionIncomplete("reject_reason", "Only a rejection has a reason.")
    if to_state != "submitted" and give_up:
        raise TransitionIncomplete("give_up", "A request to reject goes with the state submitted.")
