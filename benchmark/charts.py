"""Charts as SVG in the page's own colours, drawn on the server without a network.

Vega-Lite specifications are written with Altair and drawn by vl-convert; both take long to import,
so that a process does it with its first picture. Colours are the style
sheet's variables, so that one picture serves light and dark pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

TEXT: Final = "var(--text)"
MUTED: Final = "var(--muted)"
LINE: Final = "var(--line)"
ACCENT: Final = "var(--accent)"
#: For series and categories, in order; told apart without colour by shape or label too.
SERIES: Final = ("var(--accent)", "var(--info)", "var(--negative)", "var(--unsure)", "var(--muted)")
#: Of runs or other things that one picture tells apart, in order.
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross")
MOST_SHAPES: Final = len(SHAPES)
#: Of all text, in pixels.
TEXT_SIZE: Final = 12
#: Widths in pixels by the names that leaderboard.css knows; the narrow one fits a phone's card.
SIZES: Final = {"wide": 1080, "medium": 520, "narrow": 300}


def chart_svg(chart: Any, *, label: str) -> SafeString:
    """An Altair chart as an inline `<svg>` that scales with its place.

    `label` says in words what it shows, for those who don't see it; give the figures as a table
    beside it too. ValueError: Vega-Lite can't draw it.
    """
    styled = (
        chart.properties(background="transparent")
        .configure(font="system-ui, sans-serif")
        .configure_axis(
            labelColor=MUTED,
            titleColor=TEXT,
            titleFontWeight="normal",
            gridColor=LINE,
            domainColor=LINE,
            tickColor=LINE,
            labelFontSize=TEXT_SIZE,
            titleFontSize=TEXT_SIZE,
        )
        .configure_legend(labelColor=TEXT, titleColor=MUTED, labelFontSize=TEXT_SIZE - 1)
        .configure_header(labelColor=TEXT, titleColor=MUTED)
        .configure_view(stroke=None)
    )
    import vl_convert

    # Altair's own check of the specification takes longer than all the drawing.
    svg: str = vl_convert.vegalite_to_svg(styled.to_dict(validate=False))
    opening = f'<svg role="img" aria-label="{escape(label)}" '
    return mark_safe(svg.replace("<svg ", opening, 1))


def sized_svg(draw: Callable[[int], Any], *, label: str) -> SafeString:
    """A chart drawn for each width of SIZES, for a place with the class `chart-wrap`, whose style
    sheet shows the one that fits it: so text has the same size on phones and wide screens.

    `draw` makes the chart for a width in pixels, axes and names included. `label`: see
    `chart_svg`. ValueError: see there.
    """
    parts = [
        f'<div class="chart-{name}">{chart_svg(draw(width), label=label)}</div>'
        for name, width in SIZES.items()
    ]
    return mark_safe("".join(parts))
