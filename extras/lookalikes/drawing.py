"""A group of look-alikes as a graph, and months as bars, in SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from extras.lookalikes.selectors import Pair
from retrieval.corpus.models import Species

RADIUS: Final = 120
DOT: Final = 5
#: Width of the line of the pair that is confused most often.
WIDEST: Final = 6
_LETTERS: Final = "JFMAMJJASOND"


def graph(species: Sequence[Species], pairs: Sequence[Pair]) -> SafeString:
    """Species around a circle, an arrow from each to what it is taken for, as wide as often."""
    turns = [2 * math.pi * at / len(species) - math.pi / 2 for at in range(len(species))]
    around = [(RADIUS * math.cos(turn), RADIUS * math.sin(turn)) for turn in turns]
    places = dict(zip((node.pk for node in species), around, strict=True))
    arrows = [(pair.first, pair.second, pair.first_for_second) for pair in pairs]
    arrows += [(pair.second, pair.first, pair.second_for_first) for pair in pairs]
    arrows = [arrow for arrow in arrows if arrow[2]]
    most = max((count for *_, count in arrows), default=1)
    lines = format_html_join(
        "",
        '<path d="{}" stroke-width="{}" marker-end="url(#arrow)">'
        "<title>{} is taken for {}: {}</title></path>",
        (
            (_arc(places[start.pk], places[end.pk]), _px(max(WIDEST * count / most, 0.8)),
             start, end, count)
            for start, end, count in arrows
        ),
    )  # fmt: skip
    dots = format_html_join(
        "",
        '<circle cx="{}" cy="{}" r="{}"/><text x="{}" y="{}" text-anchor="{}">{}</text>',
        (
            # Names stand outside of the circle.
            (_px(x), _px(y), DOT, _px(1.1 * x), _px(1.12 * y + 4), _anchor(x), node)
            for node, (x, y) in zip(species, around, strict=True)
        ),
    )
    return format_html(
        '<svg role="img" class="lookalike-graph" viewBox="-290 -150 580 300" aria-label="{}">'
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" '
        'markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker></defs>'
        '<g class="arrows">{}</g><g class="nodes">{}</g></svg>',
        f"{len(species)} species, and {len(arrows)} arrows to what each is taken for.",
        lines,
        dots,
    )


def month_bars(months: Sequence[int]) -> SafeString:
    """Twelve bars, the highest of the month with most images."""
    most = max(months) or 1
    return format_html(
        '<svg role="img" class="month-bars" viewBox="0 0 240 62" aria-label="{}">{}</svg>',
        "Images by month, from January: " + ", ".join(f"{count:,}" for count in months),
        format_html_join(
            "",
            '<rect x="{}" y="{}" width="14" height="{}"/>'
            '<text x="{}" y="60" text-anchor="middle">{}</text>',
            (
                (20 * at + 3, _px(48 - 44 * count / most), _px(44 * count / most), 20 * at + 10,
                 letter)
                for at, (count, letter) in enumerate(zip(months, _LETTERS, strict=True))
            ),
        ),
    )  # fmt: skip


def _px(value: float) -> str:
    return f"{value:.1f}"


def _arc(start: tuple[float, float], end: tuple[float, float]) -> str:
    """A line that bends to its left, so that the two of a pair lie apart, and ends before a dot."""
    (x, y), (to_x, to_y) = start, end
    length = math.hypot(to_x - x, to_y - y)
    middle = ((x + to_x) / 2 + (to_y - y) / 8, (y + to_y) / 2 - (to_x - x) / 8)
    gap = (DOT + 2) / length
    to_x, to_y = to_x + (middle[0] - to_x) * 2 * gap, to_y + (middle[1] - to_y) * 2 * gap
    return f"M{x:.1f} {y:.1f}Q{middle[0]:.1f} {middle[1]:.1f} {to_x:.1f} {to_y:.1f}"


def _anchor(x: float) -> str:
    return "middle" if abs(x) < RADIUS / 10 else "start" if x > 0 else "end"
