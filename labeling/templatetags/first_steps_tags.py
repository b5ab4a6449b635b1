"""The next of the first steps, on the pages where one of them ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template

from labeling.review.first_steps import next_step

register = template.Library()


@register.inclusion_tag("labeling/_next_step.html", takes_context=True)
def next_first_step(context: Mapping[str, Any], user: Any) -> dict[str, Any]:
    """What an admin does next, until the first release is made, with a link from other pages."""
    return {"step": next_step(user), "here": context["request"].get_full_path()}
