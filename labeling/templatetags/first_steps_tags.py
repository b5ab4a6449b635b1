"""The next of the first steps, on the pages where one of them ends."""

from __future__ import annotations

from typing import Any

from django import template

from labeling.review.first_steps import Step, next_step

register = template.Library()


@register.inclusion_tag("labeling/_next_step.html")
def next_first_step(user: Any) -> dict[str, Step | None]:
    """A link to what an admin does next, until the first release is made."""
    return {"step": next_step(user)}
