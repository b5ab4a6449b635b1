"""The tables that every step of a curation reads and writes, in one DuckDB file, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb

from core.errors import Refused

Connection = duckdb.DuckDBPyConnection


class CurationRefused(Refused):
    """A source or a setting is refused as a whole."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
        self.file = file
        self.reason = reason


_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS taxon (
    taxon_id VARCHAR, name VARCHAR, rank VARCHAR, status VARCHAR, accepted_id VARCHAR,
    kingdom VARCHAR, phylum VARCHAR, class VARCHAR, "order" VARCHAR, family VARCHAR, genus VARCHAR,
    epithet VARCHAR, iucn VARCHAR
);
CREATE TABLE IF NOT EXISTS observation (
    observation_id VARCHAR, taxon_id VARCHAR, observer VARCHAR, observer_name VARCHAR,
    day DATE, observed_at TIMESTAMP, latitude DOUBLE, longitude DOUBLE, uncertainty DOUBLE,
    obscured BOOLEAN, elevation DOUBLE, country VARCHAR, quality_grade VARCHAR, deployment VARCHAR
);
CREATE TABLE IF NOT EXISTS photo (
    photo_id VARCHAR, observation_id VARCHAR, position INTEGER, media_type VARCHAR, url VARCHAR,
    file_name VARCHAR, license VARCHAR, license_url VARCHAR, license_text VARCHAR,
    rights_holder VARCHAR,
    width INTEGER, height INTEGER
);
CREATE TABLE IF NOT EXISTS vernacular (taxon_id VARCHAR, language VARCHAR, name VARCHAR);
CREATE TABLE IF NOT EXISTS confusion (species VARCHAR, taken_for VARCHAR);
CREATE TABLE IF NOT EXISTS refused (file VARCHAR, reason VARCHAR, rows BIGINT, example VARCHAR);
CREATE TABLE IF NOT EXISTS kept (photo_id VARCHAR);
CREATE TABLE IF NOT EXISTS split (photo_id VARCHAR, split VARCHAR);
CREATE OR REPLACE VIEW candidate AS
    SELECT photo.*, observation.* EXCLUDE (observation_id), taxon.name AS species,
           taxon.* EXCLUDE (taxon_id, name)
      FROM kept
      JOIN photo USING (photo_id)
      JOIN observation USING (observation_id)
      JOIN taxon USING (taxon_id);
"""
"""`taxon`: a row for each taxon of the sources; `name` without authors, `rank` and `status`
(`accepted`, `synonym`, …) in lower case, `accepted_id` the taxon that a synonym stands for, `iucn`
a category such as `EN`.

`observation`: `observer` is the source's id of the person, or a digest of the name where it gives
names alone, and `observer_name` is filled only where the license asks for attribution;
`uncertainty` and `elevation` are in meters; `obscured` is true where the source blurred the place;
`country` is an ISO 3166-1 alpha-2 code; `day` and `observed_at` are the observer's local time;
`deployment` is a camera trap's time at one place, which splits keep together.

`photo`: `position` counts from 0, the observation's primary photo; `license` is one of `cc0`, `pd`,
`cc-by`, `cc-by-nc`, `cc-by-sa`, `cc-by-nd`, `cc-by-nc-sa`, `cc-by-nc-nd`, or empty for others, and
`license_text` is what the source says; if
the image lies on this machine, `url` is its path and `file_name` its path in the source.

`confusion`: a species and another that it is mistaken for, by name.

`kept`: the photos that are still included; each step replaces it. `candidate` joins them with all
that is known. Unknown texts are empty, unknown numbers and dates NULL.
"""


def connect(file: Path, *, memory: str = "4GB", threads: int | None = None) -> Connection:
    """Open (or make) the database of a curation; joins and sorts spill into a folder beside it."""
    connection = duckdb.connect(str(file))
    connection.execute(f"SET memory_limit = '{memory}'")
    connection.execute("SET temp_directory = ?", [str(file.with_suffix(".spill"))])
    connection.execute("SET enable_progress_bar = false")
    if threads is not None:
        connection.execute(f"SET threads = {threads:d}")
    connection.execute(_SCHEMA)
    return connection


def keep(connection: Connection, where: str, values: list[object] | None = None) -> None:
    """Keep the candidates that meet an SQL condition on `candidate`'s columns."""
    replace_kept(connection, f"SELECT photo_id FROM candidate WHERE {where}", values)


def replace_kept(connection: Connection, select: str, values: list[object] | None = None) -> None:
    """Replace the photos in `kept` by those of a SELECT of photo ids."""
    connection.execute(f"CREATE OR REPLACE TABLE kept AS {select}", values or [])


def refuse(connection: Connection, *, file: str, reason: str, rows: int, example: str) -> None:
    """Count rows of a source that were refused, or a field that was left out, for one reason."""
    connection.execute("INSERT INTO refused VALUES (?, ?, ?, ?)", [file, reason, rows, example])
