"""Spans of time as people read them."""

from __future__ import annotations

from django import template

register = template.Library()


@register.filter
def duration(seconds: float) -> str:
    """Whole seconds under a minute, minutes under an hour, else hours and minutes: "3 h 05 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"
