"""Charts as Vega-Lite specifications in the page, which the browser draws (static/js/charts.js).

Colors are the style sheet's variables, so that one chart serves light and dark pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.utils.html import format_html, format_html_join, json_script
from django.utils.safestring import SafeString

#: A specification, or a part of one.
Spec = dict[str, Any]

TEXT: Final = "var(--text)"
MUTED: Final = "var(--muted)"
LINE: Final = "var(--line)"
ACCENT: Final = "var(--accent)"
#: For series and categories, in order; distinguished without color by shape or label too.
SERIES: Final = ("var(--accent)", "var(--info)", "var(--negative)", "var(--unsure)", "var(--muted)")
#: Of runs or other things that one chart distinguishes, in order.
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross")
MOST_SHAPES: Final = len(SHAPES)
#: Of all text, in pixels.
TEXT_SIZE: Final = 12
#: Widths in pixels by the names that leaderboard.css knows; the narrow one fits a phone's card.
SIZES: Final = {"wide": 1080, "medium": 520, "narrow": 300}

CONFIG: Final = {
    "font": "system-ui, sans-serif",
    "axis": {
        "labelColor": MUTED,
        "titleColor": TEXT,
        "titleFontWeight": "normal",
        "gridColor": LINE,
        "domainColor": LINE,
        "tickColor": LINE,
        "labelFontSize": TEXT_SIZE,
        "titleFontSize": TEXT_SIZE,
    },
    "legend": {"labelColor": TEXT, "titleColor": MUTED, "labelFontSize": TEXT_SIZE - 1},
    "header": {"labelColor": TEXT, "titleColor": MUTED},
    "view": {"stroke": None},
}


def number(field: str, **more: Any) -> Spec:
    """The encoding of a field of numbers."""
    return {"field": field, "type": "quantitative", **more}


def name(field: str, **more: Any) -> Spec:
    """The encoding of a field of names."""
    return {"field": field, "type": "nominal", **more}


def chart(spec: Spec, *, label: str, width: int = 0) -> SafeString:
    """The place of a chart, with its specification.

    `label` says in words what it shows, for those who don't see it; give the figures as a table
    beside it too. `width`: pixels that the drawing is made up to, with room to its left.
    """
    return format_html(
        '<div class="chart" role="img" aria-label="{}" data-vega="{}">{}'
        '<div data-vega-place class="small muted">Drawing the chart …</div></div>',
        label,
        width or "",
        json_script({"background": "transparent", "config": CONFIG, **spec}),
    )


def sized_chart(draw: Callable[[int], Spec], *, label: str) -> SafeString:
    """A chart for each width of SIZES, for a place with the class `chart-wrap`, whose style sheet
    shows the one that fits it, and only that is drawn: so text has the same size on phones and wide
    screens.

    `draw` makes the chart for a width in pixels, axes and names included. `label`: see `chart`.
    """
    return format_html_join(
        "",
        '<div class="chart-{}">{}</div>',
        ((size, chart(draw(width), label=label)) for size, width in SIZES.items()),
    )
