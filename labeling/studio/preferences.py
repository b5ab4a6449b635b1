"""How one person uses the labeling page: their keys and view, and the API for both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.api.fields import TextField
from labeling.studio.keymap import (
    ACTIONS,
    BY_NAME,
    KeysRefused,
    changed_keys,
    check_keys,
    default_keys,
    shown_key,
)
from labeling.studio.models import LabelingPreferences

LARGEST_VIEW = 4096


@dataclass(frozen=True, slots=True)
class Preferences:
    """What the labeling page starts from."""

    keys: dict[str, list[str]]
    """The keys of every action."""
    defaults: dict[str, list[str]]
    """The default keys."""
    view: dict[str, Any]
    """What the page stores for itself; not interpreted by the server."""


def preferences_of(user: Any) -> Preferences:
    """The user's preferences, or the defaults. One SQL query."""
    stored = LabelingPreferences.objects.filter(user=user).first()
    return Preferences(
        keys=_effective_keys(stored.keys if stored else {}),
        defaults=default_keys(),
        view=stored.view if stored else {},
    )


def keys_shown(user: Any, actions: Iterable[str]) -> list[tuple[str, list[str]]]:
    """(what it does, its keys as people read them) of some actions. One SQL query."""
    keys = preferences_of(user).keys
    return [(BY_NAME[name].label, [shown_key(key) for key in keys[name]]) for name in actions]


def preferences_save(
    *,
    user: Any,
    keys: Mapping[str, Sequence[str]] | None = None,
    view: Mapping[str, Any] | None = None,
) -> Preferences:
    """Store a user's keys, view, or both; what is None stays unchanged.

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


def _effective_keys(stored: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    # A later version may have other actions or defaults, with which the stored keys collide.
    try:
        return check_keys(stored)
    except KeysRefused:
        return default_keys()


def _check_view(view: Mapping[str, Any]) -> None:
    try:
        text = json.dumps(view, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise ValidationError({"view": "Numbers have to be finite."}) from None
    size = len(text.encode())
    if size > LARGEST_VIEW:
        raise ValidationError({"view": f"{size} bytes of JSON; at most {LARGEST_VIEW} are stored."})


LONGEST_KEY = 40


@extend_schema_field(
    {
        "type": "object",
        "properties": {
            action.name: {"type": "array", "items": {"type": "string", "maxLength": LONGEST_KEY}}
            for action in ACTIONS
        },
        "additionalProperties": False,
    }
)
class KeysField(serializers.DictField):
    """Keys by action; an action that is left out has its default keys."""

    child = serializers.ListField(
        child=TextField(allow_blank=True, trim_whitespace=False, max_length=LONGEST_KEY)
    )

    def to_internal_value(self, data: Any) -> Any:
        """Refuses more actions than there are before looking at each."""
        if isinstance(data, Mapping) and len(data) > len(ACTIONS):
            raise serializers.ValidationError("There are more actions than the page has.")
        return super().to_internal_value(data)


class PreferencesSerializer(serializers.Serializer[Any]):
    """Keys and view as the labeling page starts from them."""

    keys = KeysField(help_text="of every action")
    defaults = KeysField(help_text="the default keys")
    view = serializers.DictField(help_text="stored for the page")


class PreferencesWriteSerializer(serializers.Serializer[Any]):
    """What is to be stored; a member that is left out stays as it is."""

    keys = KeysField(
        required=False, help_text="an action that is left out gets its default keys back"
    )
    view = serializers.DictField(
        required=False, help_text=f"at most {LARGEST_VIEW} bytes of JSON, replaced whole"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse unknown fields."""
        unknown = sorted(map(str, set(self.initial_data) - set(self.fields)))
        if unknown:
            raise serializers.ValidationError(dict.fromkeys(unknown, "There is no such field."))
        return attrs


class LabelingPreferencesView(APIView):
    """One's own keys and view of the labeling page."""

    @extend_schema(operation_id="labeling_preferences", responses=PreferencesSerializer)
    def get(self, request: Request) -> Response:
        """One's own preferences, or the defaults."""
        return Response(PreferencesSerializer(preferences_of(request.user)).data)

    @extend_schema(
        operation_id="labeling_preferences_save",
        request=PreferencesWriteSerializer,
        responses=PreferencesSerializer,
    )
    def put(self, request: Request) -> Response:
        """Store keys, view, or both.

        Refused with the action named: one that doesn't exist, one without a key, and a key of two
        actions that work in the same view.
        """
        data = PreferencesWriteSerializer(data=request.data)
        data.is_valid(raise_exception=True)
        try:
            stored = preferences_save(user=request.user, **data.validated_data)
        except KeysRefused as refused:
            raise exceptions.ValidationError({"keys": {refused.action: str(refused)}}) from None
        return Response(PreferencesSerializer(stored).data)
