"""Which role passes a query from which state into which."""

from __future__ import annotations

from itertools import product

import pytest

from labeling.queries.models import Query
from labeling.queries.transitions import (
    LEAST_ROLE,
    ROLES,
    STATES,
    TransitionForbidden,
    TransitionIncomplete,
    TransitionRefused,
    check_transition,
    transitions_for,
)

pytestmark = pytest.mark.pure

# From each state, what annotators, reviewers and admins may make of a query.
ALLOWED: dict[str, tuple[set[str], set[str], set[str]]] = {
    "draft": (set(), set(), {"open", "rejected"}),
    "open": (
        {"submitted"},
        {"submitted", "complete"},
        {"draft", "submitted", "complete", "rejected"},
    ),
    "submitted": (set(), {"open", "complete", "rejected"}, {"open", "complete", "rejected"}),
    "complete": (set(), set(), {"open", "rejected"}),
    "rejected": (set(), set(), {"open"}),
}


def test_what_each_role_may_do_in_each_state():
    assert set(STATES) == set(Query.State.values)
    assert transitions_for(None, "open") == ()
    for state, (position, role) in product(ALLOWED, enumerate(ROLES)):
        allowed = transitions_for(role, state)
        assert set(allowed) == ALLOWED[state][position]
        for to_state in STATES:
            reason = "other" if to_state == "rejected" else ""
            wanted = {"role": role, "from_state": state, "to_state": to_state, "reason": reason}
            if to_state in allowed:
                check_transition(**wanted)
                continue
            forbidden = (state, to_state) in LEAST_ROLE
            with pytest.raises(TransitionForbidden if forbidden else TransitionRefused):
                check_transition(**wanted)


@pytest.mark.parametrize(("to_state", "reason"), [("rejected", ""), ("complete", "other")])
def test_a_rejection_and_only_it_has_a_reason(to_state, reason):
    with pytest.raises(TransitionIncomplete) as refused:
        check_transition(role="admin", from_state="open", to_state=to_state, reason=reason)
    assert refused.value.field == "reject_reason"


def test_only_who_hands_in_an_open_query_gives_it_up():
    for to_state, reason in (("complete", ""), ("rejected", "other"), ("draft", "")):
        with pytest.raises(TransitionIncomplete) as refused:
            check_transition(
                role="admin",
                from_state="open",
                to_state=to_state,
                reason=reason,
                give_up="too_easy",
            )
        assert refused.value.field == "give_up"
    with pytest.raises(TransitionForbidden):
        check_transition(
            role="annotator", from_state="draft", to_state="open", reason="", give_up="too_easy"
        )
