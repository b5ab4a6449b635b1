"""Charts as SVG in the page's own colours, drawn on the server without a network.

Vega-Lite specifications are written with Altair and drawn by vl-convert. Colours are the style
sheet's variables, so that one picture serves light and dark pages.
"""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import vl_convert
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

TEXT: Final = "var(--text)"
MUTED: Final = "var(--muted)"
LINE: Final = "var(--line)"
ACCENT: Final = "var(--accent)"
#: For series and categories, in order; told apart without colour by shape or label too.
SERIES: Final = ("var(--accent)", "var(--info)", "var(--negative)", "var(--unsure)", "var(--muted)")


def chart_svg(chart: Any, *, label: str) -> SafeString:
    """An Altair chart as an inline `<svg>` that scales with its place.

    `label` says in words what it shows, for those who don't see it; give the figures as a table
    beside it too. ValueError: not a valid Vega-Lite specification.
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
            labelFontSize=12,
            titleFontSize=12,
        )
        .configure_legend(labelColor=TEXT, titleColor=MUTED)
        .configure_header(labelColor=TEXT, titleColor=MUTED)
        .configure_view(stroke=None)
    )
    svg: str = vl_convert.vegalite_to_svg(styled.to_dict())
    opening = f'<svg role="img" aria-label="{escape(label)}" '
    return mark_safe(svg.replace("<svg ", opening, 1))


def bars(
    values: list[dict[str, Any]], *, x: str, y: str, width: int = 480, height: int = 160
) -> Any:
    """A bar chart of rows; `x` and `y` are Altair shorthands such as "category:N"."""
    return (
        alt.Chart(alt.Data(values=values))
        .mark_bar(color=ACCENT)
        .encode(x=x, y=y)
        .properties(width=width, height=height)
    )
