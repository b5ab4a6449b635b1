"""iNaturalist's open data: four gzipped files of tab-separated values."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from duckdb import DuckDBPyConnection as Connection

from curation.sources.darwin_core import RANKS
from curation.sources.tabular import aliases, find, quoted, stage_text
from curation.tables import CurationRefused

_FILES: Final = {
    "observations": "observation_uuid observer_id latitude longitude positional_accuracy taxon_id "
    "quality_grade observed_on",
    "photos": "photo_id observation_uuid extension license width height position",
    "taxa": "taxon_id ancestry rank name active",
    "observers": "observer_id login name",
}

_JOIN: Final = f"""
CREATE OR REPLACE TABLE lineage AS
WITH used AS (
    SELECT * FROM raw_taxa SEMI JOIN raw_observations USING (taxon_id)
), above AS (
    SELECT taxon_id, unnest(string_split(concat_ws('/', ancestry, taxon_id), '/')) AS ancestor
      FROM used
)
SELECT above.taxon_id,
       {", ".join(f"max(a.name) FILTER (a.rank = '{rank}') AS {quoted(rank)}" for rank in RANKS)},
       max(a.taxon_id) FILTER (a.rank = 'species') AS species_id,
       max(a.name) FILTER (a.rank = 'species' AND a.active) AS species
  FROM above JOIN (SELECT * REPLACE (lower(active) IN ('t', 'true', '1') AS active) FROM raw_taxa) a
    ON a.taxon_id = above.ancestor
 GROUP BY above.taxon_id;

CREATE OR REPLACE TABLE staged_occurrence AS
SELECT observation_uuid AS id, taxon_id AS taxon, raw_taxa.name, species, rank,
       if(species IS NULL, NULL, species_id) AS species_id,
       if(lower(active) IN ('t', 'true', '1'), 'accepted', 'inactive') AS status,
       {", ".join(f"lineage.{quoted(rank)}" for rank in RANKS)},
       observer_id AS observer, coalesce(raw_observers.name, login) AS observer_name,
       observed_on AS date, latitude, longitude, positional_accuracy AS uncertainty,
       quality_grade AS quality
  FROM raw_observations
  LEFT JOIN raw_taxa USING (taxon_id)
  LEFT JOIN lineage USING (taxon_id)
  LEFT JOIN raw_observers USING (observer_id)
 ORDER BY raw_observations.rowid;

CREATE OR REPLACE TABLE staged_media AS
SELECT photo_id AS photo, observation_uuid AS occurrence, position, width, height,
       'https://inaturalist-open-data.s3.amazonaws.com/photos/' || photo_id || '/medium.'
           || lower(extension) AS url,
       -- iNaturalist's Creative Commons licenses are those of version 4.0.
       if(license ILIKE 'cc-by%', license || ' 4.0', license) AS license,
       license AS words
  FROM raw_photos ORDER BY rowid;
"""


def stage(connection: Connection, path: Path, _unpacked: Path) -> tuple[str, str]:
    """Read the four files of a folder; addresses are of the images of 500 pixels."""
    shown = {}
    for name, columns in _FILES.items():
        file = find(path, f"{name}.csv")
        if file is None:
            raise CurationRefused(path.name, f"holds no {name}.csv.gz")
        shown[name] = file.name
        stage_text(connection, f"raw_{name}", file, aliases(columns), required=[columns.split()[0]])
    connection.execute(_JOIN)
    for name in ("lineage", *(f"raw_{name}" for name in _FILES)):
        connection.execute(f"DROP TABLE {name}")
    return shown["observations"], shown["photos"]
