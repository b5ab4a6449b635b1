"""Plain numbers about the custom fields of a release's images."""

from __future__ import annotations

from math import floor, log10
from typing import Any, Final

from releases.snapshot.snapshot import Snapshot

#: Values of a text that have a bar of their own, and bins of numbers, about.
MOST_BARS: Final = 12
#: Dates of more different months than this are counted by year.
MOST_MONTHS: Final = 24

_FIELDS: Final = """
SELECT field, kind, count(*), count(DISTINCT left(value, 7)) FILTER (kind = 'date'),
       min(try_cast(value AS DOUBLE)) FILTER (kind = 'number'),
       max(try_cast(value AS DOUBLE)) FILTER (kind = 'number')
  FROM custom_fields GROUP BY ALL ORDER BY field
"""
_FREQUENT: Final = """
SELECT left(value, 100) AS shown, count(*) AS times FROM custom_fields WHERE field = $field
 GROUP BY shown ORDER BY times DESC, shown LIMIT $most
"""
_BY_TIME: Final = """
SELECT left(value, $letters) AS shown, count(*) FROM custom_fields WHERE field = $field
 GROUP BY shown ORDER BY shown
"""
# A number on an edge begins its bin, although the quotient may come out a little less.
_BINS: Final = """
SELECT CAST(floor(CAST(value AS DOUBLE) / $step + 1e-9) AS BIGINT) AS bin, count(*)
  FROM custom_fields WHERE field = $field GROUP BY bin ORDER BY bin
"""


def field_numbers(snapshot: Snapshot) -> list[dict[str, Any]]:
    """{field, kind, images: with a value, bars: [[what, images]]} of each field by name; `bars` has
    the most frequent texts first, yes or no, and years or months in order. Of numbers `bins:
    [[from, to, images]]` instead.
    """
    if not snapshot.has_table("custom_fields"):
        return []
    found = []
    for field, kind, images, months, least, most in snapshot.sql(_FIELDS).fetchall():
        about = {"field": field, "kind": kind, "images": images}
        if kind == "number":
            about["bins"] = _bins(snapshot, field, least, most)
        elif kind == "date":
            letters = 7 if months <= MOST_MONTHS else 4
            about["bars"] = _rows(snapshot, _BY_TIME, field=field, letters=letters)
        else:
            about["bars"] = _rows(snapshot, _FREQUENT, field=field, most=MOST_BARS)
        found.append(about)
    return found


def _rows(snapshot: Snapshot, statement: str, **values: Any) -> list[list[Any]]:
    return [list(row) for row in snapshot.sql(statement, **values).fetchall()]


def _bins(snapshot: Snapshot, field: str, least: float, most: float) -> list[list[float]]:
    step = bin_width(least, most)
    counts = dict(_rows(snapshot, _BINS, field=field, step=step))
    return [
        [round(place * step, 12), round((place + 1) * step, 12), counts.get(place, 0)]
        for place in range(min(counts), max(counts) + 1)
    ]


def bin_width(least: float, most: float) -> float:
    """A width of 1, 2 or 5 times a power of ten that makes at most about MOST_BARS bins."""
    if most <= least:
        return 1.0 if abs(most) < 2**53 else abs(most)
    smallest = (most - least) / (MOST_BARS - 1)
    power: float = 10.0 ** floor(log10(smallest))
    return next(round(one * power, 12) for one in (1, 2, 5, 10) if one * power >= smallest)
