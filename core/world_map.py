"""Maps of the world as SVG: dots for cells of degrees."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from django.templatetags.static import static
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from core.geo_grid import CELL

#: Of the map, in degrees: Antarctica is left out.
SOUTH, NORTH = -60, 84
LARGEST_DOT: Final = 4.5
SMALLEST_DOT: Final = 1.1
PLACE_DOT: Final = 3.5


def dots(cells: Sequence[Sequence[int]], *, label: str) -> SafeString:
    """Dots on an equirectangular map, their areas as the cells' counts, over the land of
    `static/img/world.svg` (Natural Earth); `cells`: (south, west, count), the largest first.
    """
    largest = cells[0][2]
    return _world_map(
        [
            (
                max(south + CELL / 2, SOUTH + CELL / 2),
                west + CELL / 2,
                max(LARGEST_DOT * math.sqrt(count / largest), SMALLEST_DOT),
            )
            for south, west, count in cells
        ],
        label,
    )


def place_dot(latitude: float, longitude: float, *, label: str) -> SafeString:
    """One dot at a place, on the map of `dots`."""
    return _world_map([(min(max(latitude, SOUTH), NORTH), longitude, PLACE_DOT)], label)


def _world_map(places: Sequence[tuple[float, float, float]], label: str) -> SafeString:
    """Dots on the map; `places`: (latitude, longitude, radius in degrees)."""
    # A dot is a line without length that has round ends; those of one size are one path, in steps
    # from each to the next, which takes a fifth of the bytes of circles.
    by_radius: defaultdict[float, list[tuple[float, float]]] = defaultdict(list)
    for latitude, longitude, radius in places:
        by_radius[radius].append((-latitude, longitude))
    paths = []
    for radius, centers in by_radius.items():
        steps, at = [], (0.0, 0.0)
        for center in sorted(centers):
            steps.append(f"m{center[1] - at[1]:g} {center[0] - at[0]:g}h0")
            at = center
        paths.append(f'<path stroke-width="{2 * radius:.2f}" d="{"".join(steps)}"/>')
    return mark_safe(
        f'<svg role="img" aria-label="{escape(label)}" class="world-map" '
        f'viewBox="-180 {-NORTH} 360 {NORTH - SOUTH}">'
        f'<use class="land" href="{static("img/world.svg")}#land"/>'
        f'<g class="dots">{"".join(paths)}</g></svg>'
    )
