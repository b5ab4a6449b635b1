"""The number of flagged images for the pages' header."""

from __future__ import annotations

from typing import Any

from django import template

from core.access import Role, at_least
from retrieval.flags.selectors import flagged_image_count

register = template.Library()


@register.simple_tag
def flags_to_decide(user: Any) -> int | None:
    """Return how many images wait for a reviewer's decision; None if the user is no reviewer."""
    return flagged_image_count() if at_least(user, Role.REVIEWER) else None
