"""The report of a curation: one self-contained HTML file."""

from __future__ import annotations

from calendar import month_abbr
from math import log1p
from typing import Any, Final

from jinja2 import Environment, PackageLoader

from curation.pipeline import Curated

_MONTHS: Final = tuple(month_abbr[1:])


def report_html(curated: Curated, *, title: str, land: str = "") -> str:
    """The report: steps, refusals, continents before and after sampling, map, seasons, species.
    `land` is an SVG path of the land in degrees of longitude and (downward) latitude.
    """
    connection = curated.connection
    after = curated.after
    sampled = curated.before != after
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
        curated=curated,
        sampled=sampled,
        refused=refused,
        splits=splits,
        mapping=_mapping(curated),
        continents=_shares(curated.before["continents"], after["continents"]),
        months=_bars([(_MONTHS[month - 1], count) for month, count in after["months"]]),
        years=_bars(after["years"]),
        sizes=_bars([(_power(bits), count) for bits, count in after["sizes"]]),
        species=_bars(after["species"]),
        observers=_bars(
            [("all others" if rank > 10 else str(rank), n) for rank, n in after["observers"]]
        ),
        licenses=_bars([(name or "other", count) for name, count in after["licenses"]]),
        cells=_cells(after["cells"]),
    )


def _mapping(curated: Curated) -> list[tuple[str, int]]:
    """The number of species mapped in each way; empty without a target."""
    mapping = curated.mapping
    if mapping is None:
        return []
    return [
        ("with the same name", mapping.same),
        ("renamed", len(mapping.renamed)),
        ("left out", len(mapping.unmapped)),
        ("several in the target, left out if none has the name", len(mapping.merges)),
        ("of the target, several here", len(mapping.splits)),
        ("of the target, none here", len(mapping.absent)),
    ]


def _bars(rows: list[Any]) -> list[tuple[str, int, float]]:
    """(name, count, percent of the longest bar)."""
    most = max((count for _, count in rows), default=1)
    return [(str(name), int(count), 100 * float(count) / float(most)) for name, count in rows]


def _power(bits: int) -> str:
    """The range of numbers with this many binary digits."""
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
