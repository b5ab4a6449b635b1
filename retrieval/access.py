"""Roles, and the questions that pages and the API ask of them.

Every view goes through these helpers, so that a role means the same thing everywhere. The user
model lives in ``annotator``; here a user is anything with ``is_active`` and ``role``.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import models


class Role(models.TextChoices):
    """What a user may do; each role may do all that the one before it may."""

    ANNOTATOR = "annotator", "Annotator"
    REVIEWER = "reviewer", "Reviewer"
    ADMIN = "admin", "Admin"


_ORDER = [Role.ANNOTATOR, Role.REVIEWER, Role.ADMIN]


def role_of(user: Any) -> Role | None:
    """Return the user's role, or None for an anonymous or inactive user."""
    if not getattr(user, "is_authenticated", False) or not user.is_active:
        return None
    return Role(user.role)


def at_least(user: Any, role: Role) -> bool:
    """Tell whether the user holds `role` or one above it."""
    held = role_of(user)
    return held is not None and _ORDER.index(held) >= _ORDER.index(role)


def require_role(user: Any, role: Role) -> None:
    """Raise PermissionDenied (HTTP 403) unless the user holds `role` or one above it."""
    if not at_least(user, role):
        raise PermissionDenied(f"This needs the role {role.label.lower()}.")


def names_hidden_from(user: Any) -> bool:
    """Tell whether species names are kept from the user (HIDE_SPECIES_NAMES), so that they don't
    steer the judgment.
    """
    return bool(settings.HIDE_SPECIES_NAMES) and not at_least(user, Role.REVIEWER)
