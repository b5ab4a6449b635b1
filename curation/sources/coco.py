"""iNat2017 to iNat2021 and iNat24: one JSON file in COCO's layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import ijson
from duckdb import DuckDBPyConnection as Connection

from curation.sources.darwin_core import RANKS
from curation.sources.tabular import quoted, text
from curation.tables import CurationRefused

SECTIONS: Final = {
    name: columns.split()
    for name, columns in {
        "categories": f"id name common_name specific_epithet {' '.join(RANKS)}",
        "licenses": "id name url",
        "annotations": "image_id category_id",
        "images": "id file_name width height license rights_holder date latitude longitude "
        "location_uncertainty coordinates_obscured license_text",
    }.items()
}

_JOIN: Final = f"""
-- The address, or the name; both where they are of two licenses.
CREATE OR REPLACE TABLE given AS
SELECT id, CASE WHEN url IS NULL OR name IS NULL THEN coalesce(url, name)
       WHEN license_code(name) IN ('', license_code(url)) THEN url
       ELSE concat(name, ' ', url) END AS license
  FROM raw_licenses;

CREATE OR REPLACE TABLE labels AS
SELECT image_id AS id, min(category_id) AS category_id FROM raw_annotations
 GROUP BY image_id HAVING count(DISTINCT category_id) = 1;

CREATE OR REPLACE TABLE staged_occurrence AS
SELECT raw_images.id, c.name AS species, c.specific_epithet AS epithet, common_name AS vernacular,
       {", ".join(f"c.{quoted(rank)}" for rank in RANKS)}, date, latitude, longitude,
       location_uncertainty AS uncertainty, rights_holder AS holder,
       if(coordinates_obscured = 'true', 'obscured', NULL) AS generalized,
       l.license
  FROM raw_images LEFT JOIN labels USING (id)
  LEFT JOIN raw_categories c ON c.id = category_id LEFT JOIN given l ON l.id = raw_images.license
 ORDER BY raw_images.rowid;

CREATE OR REPLACE TABLE staged_media AS
SELECT raw_images.id AS photo, raw_images.id AS occurrence, file_name AS file, width, height,
       rights_holder AS holder, l.license, license_text AS words
  FROM raw_images LEFT JOIN given l ON l.id = raw_images.license ORDER BY raw_images.rowid;
"""


def stage_section(connection: Connection, path: Path, section: str, unpacked: Path) -> None:
    """Stream one section of the file into the table `raw_<section>`."""
    lines = unpacked / f"{section}.jsonl"
    columns = SECTIONS[section]
    try:
        with path.open("rb") as source, lines.open("w", encoding="utf-8") as target:
            for item in ijson.items(source, f"{section}.item", use_float=True):
                values = {name: item[name] for name in columns if item.get(name) not in (None, "")}
                target.write(json.dumps(values) + "\n")
    except (OSError, ijson.JSONError, AttributeError) as error:
        raise CurationRefused(path.name, f"isn't JSON in COCO's layout: {error}") from error
    declared = ", ".join(f"{text(name)}: 'VARCHAR'" for name in columns)
    connection.execute(
        f"CREATE OR REPLACE TABLE raw_{section} AS SELECT * FROM read_json("
        f"{text(str(lines))}, format = 'newline_delimited', columns = {{{declared}}})"
    )


def stage(connection: Connection, path: Path, unpacked: Path) -> tuple[str, str]:
    """Read a file; each image is an observation, and an image with two categories has no taxon."""
    for section in SECTIONS:
        stage_section(connection, path, section, unpacked)
    if connection.execute("SELECT count(*) FROM raw_images").fetchone() == (0,):
        raise CurationRefused(path.name, "isn't JSON in COCO's layout: it has no images")
    connection.execute(_JOIN)
    connection.execute("DROP TABLE labels; DROP TABLE given")
    for section in SECTIONS:
        connection.execute(f"DROP TABLE raw_{section}")
    return path.name, path.name
