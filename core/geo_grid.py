"""Cells of degrees and bands of elevation, in which places are counted."""

from __future__ import annotations

from typing import Final

#: Degrees of latitude and longitude of a cell's side.
CELL: Final = 3
#: Meters of a band of elevation.
BAND: Final = 250


def cell_sql(latitude: str, longitude: str) -> tuple[str, str]:
    """SQL for the south and the west of a place's cell; null where the place isn't known."""
    known = f"{latitude} IS NOT NULL AND {longitude} IS NOT NULL"
    south, west = (
        f"CASE WHEN {known} THEN least(floor({value} / {CELL})::int * {CELL}, {most - CELL}) END"
        for value, most in ((latitude, 90), (longitude, 180))
    )
    return south, west
