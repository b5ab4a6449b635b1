"""The tables that every step of a curation reads and writes, in one DuckDB file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS taxon (
    taxon_id VARCHAR, name VARCHAR, rank VARCHAR, status VARCHAR, accepted_id VARCHAR,
    kingdom VARCHAR, phylum VARCHAR, class VARCHAR, "order" VARCHAR, family VARCHAR, genus VARCHAR,
    epithet VARCHAR, iucn VARCHAR, lookalike_group VARCHAR
);
CREATE TABLE IF NOT EXISTS observation (
    observation_id VARCHAR, taxon_id VARCHAR, observer VARCHAR, observer_name VARCHAR,
    day DATE, observed_at TIMESTAMP, latitude DOUBLE, longitude DOUBLE, uncertainty DOUBLE,
    obscured BOOLEAN, elevation DOUBLE, country VARCHAR, quality_grade VARCHAR
);
CREATE TABLE IF NOT EXISTS photo (
    photo_id VARCHAR, observation_id VARCHAR, position INTEGER, media_type VARCHAR, url VARCHAR,
    file_name VARCHAR, license VARCHAR, license_url VARCHAR, rights_holder VARCHAR,
    width INTEGER, height INTEGER
);
CREATE TABLE IF NOT EXISTS vernacular (taxon_id VARCHAR, language VARCHAR, name VARCHAR);
CREATE TABLE IF NOT EXISTS refused (file VARCHAR, reason VARCHAR, rows BIGINT, example VARCHAR);
"""
"""`taxon`: one row a taxon of the sources; `rank` in lower case, `status` `accepted`, `synonym`, …
in lower case, `accepted_id` the taxon that a synonym stands for, `iucn` a category such as `EN`,
empty text where unknown.

`observation`: `observer` the source's id of the person, `observer_name` only where the license asks
for attribution; `uncertainty` and `elevation` in meters; `obscured` where the source blurred the
place; `country` as ISO 3166-1 alpha-2; `day` and `observed_at` in the observer's local time.

`photo`: `position` from 0 (the observation's primary photo); `media_type` such as `image/jpeg` or
empty; `license` one of `cc0`, `cc-by`, `cc-by-nc`, `cc-by-sa`, `cc-by-nd`, `cc-by-nc-sa`,
`cc-by-nc-nd`, `pd`, or empty for others; `file_name` where the image lies already, else empty.

Unknown numbers and dates are NULL.
"""


def connect(
    file: Path, *, memory: str = "4GB", threads: int | None = None
) -> duckdb.DuckDBPyConnection:
    """Open (or make) the database of a curation; joins and sorts spill into a folder beside it."""
    connection = duckdb.connect(str(file))
    connection.execute(f"SET memory_limit = '{memory}'")
    connection.execute("SET temp_directory = ?", [str(file.with_suffix(".spill"))])
    connection.execute("SET preserve_insertion_order = false")
    if threads is not None:
        connection.execute(f"SET threads = {threads:d}")
    connection.execute(_SCHEMA)
    return connection


def refuse(
    connection: duckdb.DuckDBPyConnection, *, file: str, reason: str, rows: int, example: str
) -> None:
    """Count rows of a source that were refused for one reason, with an example."""
    connection.execute("INSERT INTO refused VALUES (?, ?, ?, ?)", [file, reason, rows, example])
