"""Roles, and the checks of them by pages and the API.

Every view goes through these helpers, so that a role means the same thing everywhere. The user
model lives in ``annotator``; here a user is anything with ``is_active`` and ``role``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import models


class Role(models.TextChoices):
    """A user's role.

    From the annotator on, each role may do all that the one before it may. A researcher evaluates
    runs on releases and takes no part in making the labels: no queries in labeling, no judgments,
    no search of the corpus. So pages of labeling check `at_least(user, Role.ANNOTATOR)`, which is
    also the API's default permission, and pages of releases check `is_evaluator`.
    """

    RESEARCHER = "researcher", "Researcher"
    ANNOTATOR = "annotator", "Annotator"
    REVIEWER = "reviewer", "Reviewer"
    ADMIN = "admin", "Admin"


_ORDER = [Role.RESEARCHER, Role.ANNOTATOR, Role.REVIEWER, Role.ADMIN]


def role_of(user: Any) -> Role | None:
    """Return the user's role, or None for an anonymous or inactive user."""
    if not getattr(user, "is_authenticated", False) or not user.is_active:
        return None
    return Role(user.role)


def highest(roles: Iterable[Role]) -> Role:
    """The role that may do most. ValueError: there is none."""
    return max(roles, key=_ORDER.index)


def at_least(user: Any, role: Role) -> bool:
    """Whether the user has `role` or a higher one."""
    held = role_of(user)
    return held is not None and _ORDER.index(held) >= _ORDER.index(role)


def require_role(user: Any, role: Role) -> None:
    """Raise PermissionDenied (HTTP 403) unless the user has `role` or a higher one."""
    if not at_least(user, role):
        raise PermissionDenied(f"This needs the role {role.label.lower()}.")


def is_evaluator(user: Any) -> bool:
    """Whether the user may see releases: everybody except annotators, who label blind."""
    return role_of(user) in {Role.RESEARCHER, Role.REVIEWER, Role.ADMIN}


def require_evaluator(user: Any) -> None:
    """Raise PermissionDenied (HTTP 403) for annotators and anonymous users."""
    if not is_evaluator(user):
        raise PermissionDenied("This needs the role researcher or reviewer.")


def names_hidden_from(user: Any) -> bool:
    """Whether species names are hidden from the user (HIDE_SPECIES_NAMES), so that they don't bias
    judgments.
    """
    return bool(settings.HIDE_SPECIES_NAMES) and not is_evaluator(user)
