"""Shares as people read them."""

from __future__ import annotations

from django import template

register = template.Library()


@register.filter
def percent(share: float | str | None) -> str:
    """A share of 0..1 in whole percent: "65 %"; a dash where there is none."""
    return f"{share:.0%}".replace("%", "\u00a0%") if isinstance(share, float) else "–"
