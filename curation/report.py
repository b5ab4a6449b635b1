"""The report of a curation: one HTML file without anything from elsewhere."""

from __future__ import annotations

from calendar import month_abbr
from math import log1p
from typing import Any, Final

from jinja2 import Environment, PackageLoader

from curation.pipeline import Curated

_MONTHS: Final = tuple(month_abbr[1:])


def report_html(made: Curated, *, title: str, land: str = "") -> str:
    """The report: steps, refusals, continents before and after sampling, map, seasons, species.
    `land` is an SVG path of the land in degrees of longitude and (downward) latitude.
    """
    connection = made.connection
    after = made.after
    sampled = made.before != after
    refused = connection.execute(
        "SELECT file, reason, sum(rows), min(example) FROM refused GROUP BY file, reason "
        "ORDER BY file, 3 DESC, reason"
    ).fetchall()
    splits = connection.execute(
        "SELECT split, count(*), count(DISTINCT species), count(DISTINCT observer) FROM candidate "
        "JOIN split USING (photo_id) GROUP BY split "
        "ORDER BY list_position(['train', 'val', 'test'], split)"
    ).fetchall()
    template = Environment(
        loader=PackageLoader("curation", "templates"), autoescape=True, trim_blocks=True,
        lstrip_blocks=True,
    ).get_template("report.html")  # fmt: skip
    return template.render(
        title=title,
        land=land,
        made=made,
        sampled=sampled,
        refused=refused,
        splits=splits,
        mapping=_mapping(made),
        continents=_shares(made.before["continents"], after["continents"]),
        months=_bars([(_MONTHS[month - 1], count) for month, count in after["months"]]),
        years=_bars(after["years"]),
        sizes=_bars([(_power(bits), count) for bits, count in after["sizes"]]),
        species=_bars(after["species"]),
        observers=_bars(
            [("all others" if place > 10 else str(place), n) for place, n in after["observers"]]
        ),
        licenses=_bars([(name or "other", count) for name, count in after["licenses"]]),
        cells=_cells(after["cells"]),
    )


def _mapping(made: Curated) -> list[tuple[str, int]]:
    """How many species were mapped in which way; none without a target."""
    found = made.mapping
    if found is None:
        return []
    return [
        ("of the same name", found.same),
        ("renamed", len(found.renamed)),
        ("left out", len(found.unmapped)),
        ("several in the target, left out where none has the name", len(found.merges)),
        ("of the target, with several here", len(found.splits)),
        ("of the target, reached by none", len(found.absent)),
    ]


def _bars(rows: list[Any]) -> list[tuple[str, int, float]]:
    """(name, count, percent of the longest bar)."""
    most = max((count for _, count in rows), default=1)
    return [(str(name), int(count), 100 * float(count) / float(most)) for name, count in rows]


def _power(bits: int) -> str:
    """The range of numbers with so many binary digits."""
    return "1" if bits == 1 else f"{2 ** (bits - 1):,} to {2**bits - 1:,}"


def _shares(before: list[Any], after: list[Any]) -> list[tuple[str, int, float, int, float]]:
    """(name, observations and percent before, the same after)."""
    then, now = dict(before), dict(after)
    all_then, all_now = sum(then.values()) or 1, sum(now.values()) or 1
    return [
        (name, then[name], 100 * then[name] / all_then, now.get(name, 0),
         100 * now.get(name, 0) / all_now)
        for name in sorted(then)
    ]  # fmt: skip


def _cells(rows: list[Any]) -> list[tuple[int, int, float, int]]:
    """(x, y in cells from the north-west, opacity by the logarithm, count)."""
    most = max((count for *_, count in rows), default=1)
    return [(x, 35 - y, round(0.15 + 0.85 * log1p(n) / log1p(most), 2), n) for y, x, n in rows]
