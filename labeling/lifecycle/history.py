"""A query's history in words: changes of its state and of its fields, oldest first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any, Final

from labeling.queries.models import Query, QueryEdit, QueryTransition

#: A value of so many words or more is shown by what differs in it, a shorter one whole.
_LONG: Final = 8
_NAMES: Final = {"query_id": "number", "hand_in_rule": "rule for handing in"}


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a query."""

    made_at: datetime
    by: str
    """A user's name; empty where a command did it."""
    what: str
    note: str = ""
    changes: tuple[tuple[str, str, str], ...] = ()
    """(field, value before, value after) in words."""


def history(query: Query) -> list[Event]:
    """Every change of its state and its fields, oldest first."""
    events = [
        *map(_of_transition, query.transitions.select_related("made_by")),
        *map(_of_edit, query.edits.select_related("made_by")),
    ]
    return sorted(events, key=lambda event: event.made_at)


def field_name(name: str) -> str:
    """A field of a query as people call it."""
    return _NAMES.get(name, name.replace("_", " "))


def in_words(changes: Any) -> tuple[tuple[str, str, str], ...]:
    """The changes of a `QueryEdit`, as people read them."""
    return tuple((field_name(name), _text(before), _text(after)) for name, before, after in changes)


def differing_words(before: str, after: str) -> list[tuple[str, str]]:
    """A text with what was taken out of it and put into it, as ("same" | "del" | "ins", words).

    Empty where both are short or share less than a half: they read better whole, one after the
    other.
    """
    old, new = (re.findall(r"\S+\s*|\s+", text) for text in (before, after))
    if max(len(old), len(new)) < _LONG:
        return []
    matcher = SequenceMatcher(None, old, new)
    if matcher.ratio() < 0.5:
        return []
    parts = []
    for operation, i, to_i, j, to_j in matcher.get_opcodes():
        if operation == "equal":
            sides = [("same", new[j:to_j])]
        else:
            sides = [("del", old[i:to_i]), ("ins", new[j:to_j])]
        parts += [(kind, "".join(words)) for kind, words in sides if words]
    return parts


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else str(value)


def _of_transition(change: QueryTransition) -> Event:
    what = f"{change.get_from_state_display()} → {change.get_to_state_display()}"
    if change.from_state == change.to_state:
        what = "Part handed in"
    note = f"{change.get_reason_display()} {change.note}".strip()
    return Event(change.made_at, _name(change), what, note)


def _of_edit(edit: QueryEdit) -> Event:
    return Event(edit.made_at, _name(edit), "Changed", changes=in_words(edit.changes))


def _name(row: QueryTransition | QueryEdit) -> str:
    return row.made_by.get_username() if row.made_by else ""
