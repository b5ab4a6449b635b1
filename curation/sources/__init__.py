"""The sources of a curation: archives of observations and their photos."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Final

from duckdb import DuckDBPyConnection as Connection

from curation.sources import camtrap, coco, gbif, inaturalist
from curation.sources.darwin_core import define_functions, store
from curation.sources.tabular import aliases, stage_parquet, whole
from curation.tables import CurationRefused

_CRYPTICBIO: Final = aliases(
    "taxon:taxon_id species:scientificName|scientific_name|species photo:photo_id license year "
    "month day kingdom phylum class order family genus vernacular:vernacularName|common_name "
    "lookalikes:crypticGroup date:eventDate|observed_on latitude:decimalLatitude|latitude "
    "longitude:decimalLongitude|longitude url:url|photo_url|identifier "
    "uncertainty:coordinateUncertaintyInMeters|public_positional_accuracy|positional_accuracy "
    "withheld:informationWithheld generalized:dataGeneralizations"
)
_ONE_PHOTO_A_ROW: Final = r"""
CREATE OR REPLACE TABLE staged_occurrence AS
SELECT coalesce(photo, nullif(regexp_extract(url, 'inaturalist.*/photos/(\d+)/', 1), ''), md5(url))
           AS id, * EXCLUDE (lookalikes) FROM raw ORDER BY raw.rowid;
CREATE OR REPLACE TABLE staged_media AS
SELECT id AS photo, id AS occurrence, url, license FROM staged_occurrence
 ORDER BY staged_occurrence.rowid;
INSERT INTO confusion
SELECT DISTINCT species, trim(taken_for) FROM (
    SELECT species, unnest(string_split(lookalikes, '|')) AS taken_for FROM raw
) WHERE trim(taken_for) NOT IN ('', species)
EXCEPT FROM confusion;
DROP TABLE raw
"""


def _crypticbio(connection: Connection, path: Path, _unpacked: Path) -> tuple[str, str]:
    """CrypticBio and BioTrove: Parquet; each row is a photo and its own observation."""
    stage_parquet(connection, "raw", path, _CRYPTICBIO, required=("species", "url"))
    connection.execute(_ONE_PHOTO_A_ROW)
    return path.name, path.name


_READERS: Final[dict[str, Callable[..., tuple[str, str]]]] = {
    "gbif-archive": gbif.stage_archive,
    "gbif-csv": gbif.stage_csv,
    "gbif-parquet": gbif.stage_snapshot,
    "inaturalist": inaturalist.stage,
    "crypticbio": _crypticbio,
    "coco": coco.stage,
    "camtrap-dp": camtrap.stage,
}
KINDS: Final = tuple(_READERS)
SWITCHES: Final = {"camtrap-dp": {"blank", "human"}}
"""The settings of a kind of source, true or false; false where they aren't given."""


def read(
    connection: Connection, *, kind: str, path: Path, as_of: date | None = None, **switches: bool
) -> None:
    """Read a source into the tables, all of it or nothing, and keep all its photos.

    Days after `as_of` are left out. The address of a file beside the source is its path. Raises
    CurationRefused for a source that can't be read at all.
    """
    if kind not in _READERS:
        raise CurationRefused(path.name, f"unknown kind {kind}; there are {', '.join(KINDS)}")
    define_functions(connection)
    with whole(connection, path) as unpacked:
        occurrences, media = _READERS[kind](connection, path, unpacked, **switches)
        store(connection, occurrences=occurrences, media=media, as_of=as_of)
        folder = path if path.is_dir() else path.parent
        connection.execute(
            "UPDATE photo SET url = concat(?, '/', file_name) WHERE url = '' AND file_name <> ''",
            [str(folder.resolve())],
        )
