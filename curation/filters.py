"""The filters of a corpus: each keeps the candidates that meet one condition.

As in INQUIRE's appendix H.1, iNat2017 (section 3.2) and CrypticBio (section 3, appendix D).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np

from curation.sources.darwin_core import bare_names
from curation.tables import Connection, CurationRefused, keep, replace_kept

Filter = Callable[[Connection, Any], None]


def apply(connection: Connection, *, name: str, value: Any) -> None:
    """Keep the candidates that meet a filter; CurationRefused for a value that it can't take."""
    try:
        FILTERS[name](connection, value)
    except (TypeError, ValueError, KeyError, AttributeError, OSError) as error:
        raise CurationRefused(f"filters.{name}", f"can't be {value!r}: {error}") from None


def _one_of(column: str, change: Callable[[str], str] = str.lower) -> Filter:
    def keep_those(connection: Connection, values: Any) -> None:
        keep(
            connection, f"list_contains(?, {column})", [[change(value) for value in _texts(values)]]
        )

    return keep_those


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("a list of texts is needed")
    return values


def _flag(condition: str) -> Filter:
    def keep_those(connection: Connection, value: Any) -> None:
        if value is not True:
            raise ValueError("true is needed, or false to leave the filter out")
        keep(connection, condition)

    return keep_those


def _years(connection: Connection, value: Any) -> None:
    first, last = (int(year) for year in value)
    keep(connection, "year(day) BETWEEN ? AND ?", [first, last])


def _days(connection: Connection, value: Any) -> None:
    first, last = value
    if not (isinstance(first, date) and isinstance(last, date)):
        raise ValueError("two dates such as 2024-09-01 are needed")
    keep(connection, "day BETWEEN ? AND ?", [first, last])


def _uncertainty(connection: Connection, meters: Any) -> None:
    keep(connection, "uncertainty <= ?", [float(meters)])


def _primary(connection: Connection, value: Any) -> None:
    if value is not True:
        raise ValueError("true is needed, or false to leave the filter out")
    replace_kept(
        connection,
        "SELECT arg_min(photo_id, (position, photo_id)) AS photo_id FROM kept "
        "JOIN photo USING (photo_id) GROUP BY observation_id",
    )


def _least(connection: Connection, value: Any) -> None:
    observations = int(value.get("observations", 1))
    observers = int(value.get("observers", 1))
    if unknown := set(value) - {"observations", "observers"}:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    keep(
        connection,
        "species IN (SELECT species FROM candidate GROUP BY species "
        "HAVING count(DISTINCT observation_id) >= ? AND count(DISTINCT observer) >= ?)",
        [observations, observers],
    )


def _species_file(connection: Connection, path: Any) -> None:
    keep(connection, "list_contains(?, species)", [_names_in(connection, path)])


def _names_in(connection: Connection, path: Any) -> list[str]:
    """The species in a file: one name per line, or a CSV with a column `species`, `scientificName`
    or `scientific_name` (such as a list of invasive species); authors may follow the names.
    """
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    names = {"species", "scientificname", "scientific_name"}
    header = [column.strip().lower() for column in rows[0]] if rows else []
    index = next((n for n, column in enumerate(header) if column in names), None)
    column_rows = rows if index is None else rows[1:]
    values = [row[index or 0].strip() for row in column_rows if len(row) > (index or 0)]
    return bare_names(connection, values)


def _lookalikes(connection: Connection, value: Any) -> None:
    """Species that are mistaken for others, and these others: all pairs (true), or those with a
    species of a list, of a file (`{ file = "…" }`) or of IUCN categories (`{ iucn = ["EN"] }`).
    """
    if isinstance(value, dict) and "iucn" in value:
        rows = connection.execute(
            "SELECT name FROM taxon WHERE list_contains(?, iucn)", [_texts(value["iucn"])]
        ).fetchall()
        around = [species for (species,) in rows]
    elif isinstance(value, dict):
        around = _names_in(connection, value["file"])
    else:
        around = [] if value is True else _texts(value)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE alike AS SELECT unnest([species, taken_for]) AS species "
        "FROM confusion WHERE $1 OR list_contains($2, species) OR list_contains($2, taken_for)",
        [value is True, around],
    )
    keep(connection, "species IN (SELECT species FROM alike)")


def _box(connection: Connection, value: Any) -> None:
    west, south, east, north = (float(degrees) for degrees in value)
    across = "BETWEEN $1 AND $3" if west <= east else "NOT BETWEEN $3 AND $1"
    keep(
        connection,
        f"latitude BETWEEN $2 AND $4 AND longitude {across}",
        [west, south, east, north],
    )


def _polygon(connection: Connection, path: Any) -> None:
    """Places inside the polygons of a GeoJSON or WKT file."""
    import shapely

    text = Path(path).read_text()
    if text.lstrip().startswith("{"):
        content = json.loads(text)
        parts = content.get("features", [content])
        geometries = [json.dumps(part.get("geometry", part)) for part in parts]
        shape = shapely.union_all([shapely.from_geojson(geometry) for geometry in geometries])
    else:
        shape = shapely.from_wkt(text)
    shapely.prepare(shape)
    connection.execute("CREATE OR REPLACE TEMP TABLE inside (photo_id VARCHAR)")
    batches = (
        connection.cursor()
        .sql("SELECT photo_id, longitude, latitude FROM candidate WHERE latitude IS NOT NULL")
        .to_arrow_reader(1_000_000)
    )
    for batch in batches:
        inside = shapely.contains_xy(
            shape, np.asarray(batch["longitude"]), np.asarray(batch["latitude"])
        )
        rows = batch.select(["photo_id"]).filter(inside)
        connection.register("inside_rows", rows)
        connection.execute("INSERT INTO inside FROM inside_rows")
        connection.unregister("inside_rows")
    replace_kept(connection, "FROM inside")


def _balanced(connection: Connection, value: Any) -> None:
    """Exactly this number of observations of each species, chosen by their ids' digests; species
    with fewer are left out.
    """
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE balanced AS SELECT observation_id FROM ("
        "SELECT observation_id, count(*) OVER (PARTITION BY species) AS size, row_number() OVER "
        "(PARTITION BY species ORDER BY md5(observation_id), observation_id) AS number FROM "
        "(SELECT DISTINCT species, observation_id FROM candidate)) "
        "WHERE size >= $1 AND number <= $1",
        [int(value)],
    )
    keep(connection, "observation_id IN (SELECT observation_id FROM balanced)")


FILTERS: Final[dict[str, Filter]] = {
    "quality_grade": _one_of("quality_grade"),
    "licenses": _one_of("license"),
    "rank": _one_of("rank"),
    "status": _one_of("status"),
    "media_type": _one_of("media_type"),
    "place": _flag("latitude IS NOT NULL AND longitude IS NOT NULL"),
    "uncertainty": _uncertainty,
    "exact_place": _flag("NOT obscured"),
    "date": _flag("day IS NOT NULL"),
    "years": _years,
    "days": _days,
    "species": _species_file,
    "genera": _one_of("genus", str),
    "families": _one_of("family", str),
    "classes": _one_of("class", str),
    "kingdoms": _one_of("kingdom", str),
    "lookalikes": _lookalikes,
    "iucn": _one_of("iucn", str.upper),
    "countries": _one_of("country", str.upper),
    "box": _box,
    "polygon": _polygon,
    "primary_photo": _primary,
    "least": _least,
    "balanced": _balanced,
}
"""The filters by their name in a configuration."""
