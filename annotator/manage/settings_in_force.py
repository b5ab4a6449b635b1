"""The settings of the environment as they are in force, without secrets."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings

from annotator.environment import Environment, misspelled

_SECRET: Final = re.compile(r"SECRET|PASSWORD|TOKEN|KEY")
#: Settings under other names than their variables.
_NAMES: Final = {
    "EMAIL_FROM": "DEFAULT_FROM_EMAIL",
    "OIDC_CLIENT_ID": "OIDC_RP_CLIENT_ID",
    "OIDC_CLIENT_SECRET": "OIDC_RP_CLIENT_SECRET",
}


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """A variable of the environment with its value."""

    name: str
    value: str
    """Empty where it is hidden, and where there is none."""
    is_set: bool
    """Whether the environment sets it; else it has its default."""
    hidden: bool
    """Whether its value isn't shown, since it is or may hold a secret."""


def settings_in_force() -> list[SettingInForce]:
    """Every variable that the settings read, by name."""
    return [_setting(name, is_set) for name, is_set in sorted(settings.VARIABLES.items())]


def misspelled_variables() -> dict[str, str]:
    """Variables of the environment that nothing reads, each with one that is read and called nearly
    so.
    """
    return misspelled(settings.VARIABLES, os.environ)


def _setting(name: str, is_set: bool) -> SettingInForce:
    attribute = _NAMES.get(name, name)
    if hasattr(settings, attribute):
        value = _text(getattr(settings, attribute))
    else:
        value = Environment().text(name) if is_set else ""
    hidden = bool(value) and (_SECRET.search(name) is not None or _may_hold_password(value))
    return SettingInForce(name, "" if hidden else value, is_set, hidden)


def _may_hold_password(value: str) -> bool:
    """Whether it is an address with a user's name or with parameters."""
    return "://" in value and ("@" in value or "?" in value)


def _text(value: Any) -> str:
    """A value as the environment has it, or nearly so."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ", ".join(f"{key}={_text(member)}" for key, member in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return str(value)
