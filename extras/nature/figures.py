"""When, where and of which species a query's relevant images are, beside all images of the species.

The images of the same species say where and when people photograph them; what a query finds more
often than that tells of the animals and plants rather than of the people.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from core.geo_grid import BAND, cell_sql
from core.sql import fetch_all
from labeling.judging.progress import relevant_images
from labeling.queries.models import Query
from retrieval.corpus.models import Image, ImageWithdrawal, Species

MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
COLUMNS: Final = ("plot", "value", "relevant", "images")


@dataclass(frozen=True, slots=True)
class Row:
    """One value: how many of the relevant images have it, and how many of all."""

    value: str
    relevant: int
    images: int


@dataclass(frozen=True, slots=True)
class Nature:
    """The figures of a query."""

    relevant: int
    images: int
    """Of the relevant images' species, the relevant ones among them; without withdrawn ones."""
    months: list[Row]
    years: list[Row]
    species: list[Row]
    """Most relevant images first."""
    elevations: list[Row]
    """By bands of BAND meters, named by their lower end."""
    cells: list[tuple[int, int, int, int]]
    """(south, west, relevant, images) of cells of CELL degrees, most relevant images first."""

    def rows(self) -> Iterable[tuple[str, str, int, int]]:
        """All figures, in the order of COLUMNS."""
        for plot in ("months", "years", "species", "elevations"):
            for row in getattr(self, plot):
                yield plot, row.value, row.relevant, row.images
        for south, west, relevant, images in self.cells:
            yield "places", f"{south} {west}", relevant, images


_SOUTH, _WEST = cell_sql("latitude", "longitude")
_SEEN: Final = f"""
WITH relevant AS (
    SELECT id, species_id FROM {Image._meta.db_table} i WHERE id = ANY(%(relevant)s::bigint[])
), seen AS (
    SELECT i.*, true AS relevant FROM {Image._meta.db_table} i JOIN relevant USING (id)
     UNION ALL
    SELECT i.*, false FROM (SELECT DISTINCT species_id FROM relevant) s
      JOIN {Image._meta.db_table} i ON i.species_id = s.species_id
     WHERE i.id <> ALL(%(relevant)s::bigint[])
), described AS (
    SELECT relevant, species_id, extract(month FROM observed_at AT TIME ZONE 'UTC')::int AS month,
           extract(year FROM observed_at AT TIME ZONE 'UTC')::int AS year,
           floor(elevation / {BAND})::int * {BAND} AS band,
           {_SOUTH} AS south, {_WEST} AS west
      FROM seen WHERE NOT EXISTS (SELECT FROM {ImageWithdrawal._meta.db_table} w
                                   WHERE w.image_id = seen.id AND w.restored_at IS NULL)
)
SELECT grouping(month, year, species_id, band, south) AS kind, month, year, species_id, band, south,
       west, count(*) FILTER (WHERE relevant), count(*)
  FROM described
 GROUP BY GROUPING SETS ((month), (year), (species_id), (band), (south, west), ())
"""
_MONTH, _YEAR, _SPECIES, _BAND, _CELL, _ALL = (
    0b01111, 0b10111, 0b11011, 0b11101, 0b11110, 0b11111,
)  # fmt: skip


def nature_of(query: Query) -> Nature:
    """The figures of a query, from three SQL queries; days are those in UTC."""
    rows = fetch_all(_SEEN, {"relevant": relevant_images(query)})

    def of(kind: int) -> list[tuple[Any, ...]]:
        return [row[1:] for row in rows if row[0] == kind]

    by_month = {row[0]: row[6:] for row in of(_MONTH) if row[0] is not None}
    by_species = {row[2]: row[6:] for row in of(_SPECIES)}
    names = dict(Species.objects.filter(pk__in=by_species).values_list("pk", "scientific_name"))
    found = [Row(names.get(pk, "unknown"), *counts) for pk, counts in by_species.items()]
    cells = [row[4:] for row in of(_CELL) if row[4] is not None]
    [(relevant, images)] = [row[6:] for row in of(_ALL)] or [(0, 0)]
    months = [Row(name, *by_month.get(at, (0, 0))) for at, name in enumerate(MONTHS, start=1)]
    return Nature(
        relevant=relevant,
        images=images,
        months=months if by_month else [],
        years=_ascending(of(_YEAR), 1),
        species=sorted(found, key=lambda row: (-row.relevant, row.value)),
        elevations=_ascending(of(_BAND), 3),
        cells=sorted(cells, key=lambda cell: (-cell[2], cell[:2])),
    )


def _ascending(rows: list[tuple[Any, ...]], at: int) -> list[Row]:
    """The known values of a column, ascending."""
    known = sorted((row for row in rows if row[at] is not None), key=lambda row: row[at])
    return [Row(str(row[at]), *row[6:]) for row in known]
