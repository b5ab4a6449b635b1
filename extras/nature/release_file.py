"""nature.csv: when, where and of which species each query's relevant images are, beside all that
were judged for it; nature_val.csv: the same of the validation queries.

query_id,what,value,relevant,judged
3,month,5,12,40
3,year,2021,20,51
3,elevation,250,4,9
3,place,51 -3,2,7
3,species,Rana temporaria,18,30

A place is the south-west corner of a cell of CELL degrees, an elevation the lower end of a band of
BAND meters; months and years are those in UTC.
"""

from __future__ import annotations

from typing import Final

from core.csv_rows import spreadsheet_text
from core.geo_grid import BAND, cell_sql
from releases.formats.base import Files
from releases.snapshot.snapshot import Snapshot

COLUMNS: Final = ("query_id", "what", "value", "relevant", "judged")
WHAT: Final = ("month", "year", "elevation", "place", "species")

_SOUTH, _WEST = cell_sql("latitude", "longitude")
_COUNTS: Final = f"""
WITH seen AS (
    SELECT query_id, relevant, try_cast(substr(observed_at, 6, 2) AS INT)::TEXT AS month,
           try_cast(substr(observed_at, 1, 4) AS INT)::TEXT AS year,
           (floor(elevation / {BAND})::INT * {BAND})::TEXT AS elevation,
           {_SOUTH} || ' ' || {_WEST} AS place, nullif(scientific_name, '') AS species
      FROM pairs JOIN images USING (image_id)
)
SELECT query_id, what, value, count(*) FILTER (relevant) AS found, count(*)
  FROM (UNPIVOT seen ON {", ".join(WHAT)} INTO NAME what VALUE value)
 GROUP BY query_id, what, value HAVING found > 0
 ORDER BY query_id, list_position($what, what), try_cast(value AS INT), format('{{:>5}}', value)
"""


def write(snapshot: Snapshot, files: Files) -> None:
    """Write the file; none where nothing of it is known of any relevant image."""
    lines = [
        (query_id, what, spreadsheet_text(value) if what == "species" else value, *counts)
        for query_id, what, value, *counts in snapshot.sql(_COUNTS, what=WHAT).fetchall()
    ]
    if lines:
        files.csv(f"nature{files.labels}.csv", COLUMNS, lines)
