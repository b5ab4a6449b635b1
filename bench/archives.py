"""Made-up archives of millions of observations, as iNaturalist's open data and GBIF have them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb

_META: Final = """<?xml version="1.0" encoding="utf-8"?>
<archive xmlns="http://rs.tdwg.org/dwc/text/">
 <core encoding="UTF-8" fieldsTerminatedBy="\\t" linesTerminatedBy="\\n" fieldsEnclosedBy=""
       ignoreHeaderLines="1" rowType="http://rs.tdwg.org/dwc/terms/Occurrence">
  <files><location>occurrence.txt</location></files><id index="0"/>
  {core}
 </core>
 <extension encoding="UTF-8" fieldsTerminatedBy="\\t" linesTerminatedBy="\\n" fieldsEnclosedBy=""
            ignoreHeaderLines="1" rowType="http://rs.gbif.org/terms/1.0/Multimedia">
  <files><location>multimedia.txt</location></files><coreid index="0"/>
  {media}
 </extension>
</archive>
"""

_ROWS: Final = """
CREATE TABLE seen AS
WITH drawn AS (
    SELECT number, {draws}
      FROM range($rows) AS numbers(number)
), placed AS (
    SELECT *, floor($species * pow(a, 3))::BIGINT AS taxon, floor($observers * pow(b, 3))::BIGINT
           AS person, floor(400 * pow(c, 2))::BIGINT AS town FROM drawn
)
SELECT format('{{:08x}}-0000-4000-8000-{{:012x}}', number % 4294967296, number) AS uuid, number,
       1000 + taxon AS taxon_id, person + 1 AS observer_id,
       CASE WHEN g < .01 THEN NULL WHEN g < .015 THEN 0 ELSE round(
           CASE WHEN town % 5 < 3 THEN 28 + town * 7 % 30 ELSE (town * 13 % 100) - 45 END
           + (d - .5) * (1 + e), 5) END AS latitude,
       CASE WHEN g < .01 THEN NULL WHEN g < .015 THEN 0 ELSE round(
           CASE town % 5 WHEN 0 THEN -125 + town * 11 % 55 WHEN 1 THEN -120 + town * 3 % 50
                         WHEN 2 THEN -9 + town * 7 % 40 ELSE (town * 17 % 340) - 170 END
           + (f - .5) * (1 + e), 5) END AS longitude,
       DATE '2017-01-01' + floor(pow(h, .6) * 2555)::INTEGER AS observed_on,
       CASE WHEN i < .7 THEN 'research' WHEN i < .9 THEN 'needs_id' ELSE 'casual' END
           AS quality_grade,
       CASE WHEN j < .1 THEN 28000 ELSE 5 + floor(j * 100)::BIGINT END AS positional_accuracy,
       CASE WHEN k < .6 THEN 'CC-BY-NC' WHEN k < .75 THEN 'CC-BY' WHEN k < .85 THEN 'CC0'
            WHEN k < .9 THEN 'CC-BY-NC-SA' ELSE NULL END AS license, l < .4 AS has_second
  FROM placed
"""


def write_open_data(folder: Path, rows: int) -> Path:
    """iNaturalist's open data with so many observations: species and observers by power laws, six
    of ten in North America and Europe, 1.4 photos each. The same number gives the same bytes.
    """
    folder.mkdir(parents=True)
    connection = _rows(rows)
    photos = """
        SELECT number * 2 + extra AS photo_id, uuid AS observation_uuid, observer_id,
               'jpg' AS extension, license, 800 AS width, 600 AS height, extra AS position
          FROM seen, (VALUES (0), (1)) extras(extra) WHERE extra = 0 OR has_second
         ORDER BY photo_id
    """
    for name, sql in {
        "observations": "SELECT uuid AS observation_uuid, observer_id, latitude, longitude, "
        "positional_accuracy, taxon_id, quality_grade, observed_on FROM seen ORDER BY number",
        "photos": f"SELECT md5(photo_id::VARCHAR) AS photo_uuid, * FROM ({photos})",
        "taxa": "FROM taxa ORDER BY taxon_id",
        "observers": "SELECT DISTINCT observer_id, 'person' || observer_id AS login, NULL AS name "
        "FROM seen ORDER BY observer_id",
    }.items():
        connection.execute(
            f"COPY ({sql}) TO '{folder}/{name}.csv.gz' (DELIMITER '\t', HEADER, QUOTE '', "
            "COMPRESSION gzip)"
        )
    connection.close()
    return folder


def write_darwin_core(folder: Path, rows: int) -> Path:
    """The same observations as a Darwin Core archive, as GBIF sends it."""
    folder.mkdir(parents=True)
    connection = _rows(rows)
    license_ = "CASE WHEN license IS NOT NULL THEN 'http://creativecommons.org/licenses/' || "
    license_ += "replace(lower(license[4:]), '0', 'zero') || '/4.0/' END"
    parts = {
        "occurrence": "SELECT number AS gbifID, latitude AS decimalLatitude, longitude AS "
        "decimalLongitude, observed_on AS eventDate, species.name AS species, "
        "'SPECIES' AS taxonRank, 'ACCEPTED' AS taxonomicStatus, genus.name AS genus, "
        "observer_id AS recordedByID, "
        "'50c9509d-22c7-4a22-a47d-8c48425ef4a7' AS datasetKey FROM seen "
        "JOIN taxa species USING (taxon_id) JOIN taxa genus ON genus.taxon_id = "
        "string_split(species.ancestry, '/')[-1]::BIGINT WHERE quality_grade = 'research' "
        "ORDER BY number",
        "multimedia": "SELECT number AS gbifID, 'StillImage' AS type, 'image/jpeg' AS format, "
        "'https://inaturalist-open-data.s3.amazonaws.com/photos/' || (number * 2 + extra) || "
        f"'/original.jpg' AS identifier, {license_} AS license "
        "FROM seen, (VALUES (0), (1)) extras(extra) "
        "WHERE quality_grade = 'research' AND (extra = 0 OR has_second) ORDER BY number, extra",
    }
    fields = {}
    for name, sql in parts.items():
        columns = [row[0] for row in connection.execute(f"DESCRIBE {sql}").fetchall()]
        fields[name] = "\n  ".join(
            f'<field index="{n}" term="http://rs.tdwg.org/dwc/terms/{column}"/>'
            for n, column in enumerate(columns)
            if n
        )
        connection.execute(
            f"COPY ({sql}) TO '{folder}/{name}.txt' (DELIMITER '\t', HEADER, QUOTE '')"
        )
    (folder / "meta.xml").write_text(
        _META.format(core=fields["occurrence"], media=fields["multimedia"])
    )
    connection.close()
    return folder


def _rows(rows: int) -> duckdb.DuckDBPyConnection:
    """A database with the tables `seen` and `taxa`."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    draws = ", ".join(
        f"(md5_number_lower(concat('{letter}', number)) % 1000000007) / 1000000007.0 AS {letter}"
        for letter in "abcdefghijkl"
    )
    species = max(20, min(10_000, rows // 3_300))
    connection.execute(
        _ROWS.format(draws=draws),
        {"rows": rows, "species": species, "observers": max(50, rows // 20)},
    )
    genus = "'Genus' || chr((97 + n % 26)::INTEGER)"
    letters = "translate(n::VARCHAR, '0123456789', 'abcdefghij')"
    connection.execute(
        "CREATE TABLE taxa AS SELECT 1 AS taxon_id, '' AS ancestry, 70 AS rank_level, 'kingdom' AS "
        "rank, 'Animalia' AS name, 't' AS active UNION ALL "
        f"SELECT 100 + n, '1', 20, 'genus', {genus}, 't' FROM range(26) genera(n) UNION ALL "
        f"SELECT 1000 + n, '1/' || (100 + n % 26), 10, 'species', {genus} || ' species' || "
        f"{letters}, 't' FROM range({species}) names(n)"
    )
    return connection
