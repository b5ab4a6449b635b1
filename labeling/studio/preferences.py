"""How one person works on the labeling page: their keys, and how they left it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError

from labeling.studio.keymap import KeysRefused, changed_keys, check_keys, default_keys
from labeling.studio.models import LabelingPreferences

LARGEST_VIEW = 4096


@dataclass(frozen=True, slots=True)
class Preferences:
    """What the labeling page starts from."""

    keys: dict[str, list[str]]
    """The keys of every action."""
    defaults: dict[str, list[str]]
    """What they are where nobody changed them."""
    view: dict[str, Any]
    """What the page itself wants to find again; the server doesn't look into it."""


def preferences_of(user: Any) -> Preferences:
    """The user's preferences, or the defaults. One SQL query."""
    kept = LabelingPreferences.objects.filter(user=user).first()
    return Preferences(
        keys=_in_force(kept.keys if kept else {}),
        defaults=default_keys(),
        view=kept.view if kept else {},
    )


def preferences_save(
    *,
    user: Any,
    keys: Mapping[str, Sequence[str]] | None = None,
    view: Mapping[str, Any] | None = None,
) -> Preferences:
    """Keep a user's keys, view, or both; what is None stays as it was.

    An action that `keys` leaves out gets its default keys back. Raises KeysRefused, and
    ValidationError for a view of more than LARGEST_VIEW bytes of JSON or that can't be stored.
    """
    fields: dict[str, Any] = {}
    if keys is not None:
        fields["keys"] = changed_keys(check_keys(keys))
    if view is not None:
        _check_view(view)
        fields["view"] = view
    if fields:
        LabelingPreferences.objects.update_or_create(user=user, defaults=fields)
    return preferences_of(user)


def _in_force(kept: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    # A later version may have other actions or defaults, with which the kept keys collide.
    try:
        return check_keys(kept)
    except KeysRefused:
        return default_keys()


def _check_view(view: Mapping[str, Any]) -> None:
    try:
        text = json.dumps(view, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise ValidationError({"view": "Numbers have to be finite."}) from None
    size = len(text.encode())
    if size > LARGEST_VIEW:
        raise ValidationError({"view": f"{size} bytes of JSON; at most {LARGEST_VIEW} are kept."})
