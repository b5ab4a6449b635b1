"""Latitudes and longitudes as people read them: "1.65° S"."""

from __future__ import annotations

from django import template

register = template.Library()


@register.filter
def latitude(degrees: float, decimals: int = 4) -> str:
    """ "1.65° S" of -1.65 with two decimals."""
    return f"{abs(degrees):.{decimals}f}° {'S' if degrees < 0 else 'N'}"


@register.filter
def longitude(degrees: float, decimals: int = 4) -> str:
    """ "70.10° W" of -70.1 with two decimals."""
    return f"{abs(degrees):.{decimals}f}° {'W' if degrees < 0 else 'E'}"
