"""Reads of people and tokens for pages."""

from __future__ import annotations

from functools import cache
from zoneinfo import available_timezones

from django.db.models import QuerySet
from django.db.models.functions import Now

from annotator.models import ApiToken, User


def people_listed() -> QuerySet[User]:
    """Everybody by name, those last who are deactivated."""
    return User.objects.order_by("-is_active", "username")


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """A person's tokens that haven't expired, the latest first."""
    return user.api_tokens.filter(expires_at__gt=Now()).order_by("-pk")


@cache
def time_zones() -> list[str]:
    """UTC, and the time zones of the world's places by name."""
    places = {name for name in available_timezones() if "/" in name}
    return ["UTC", *sorted(name for name in places if not name.startswith(("Etc/", "SystemV/")))]
