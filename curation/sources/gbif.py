"""GBIF's downloads: Darwin Core archives, simple CSV, and the Parquet snapshot."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from duckdb import DuckDBPyConnection as Connection

from curation.sources.tabular import (
    Names,
    aliases,
    find,
    in_utf8,
    stage_parquet,
    stage_text,
    unpack,
)
from curation.tables import CurationRefused, refuse

OCCURRENCE: Final = aliases(
    "id:key|gbifID|occurrenceID taxon:acceptedTaxonKey|taxonKey|taxonID species_id:speciesKey "
    "species name:acceptedScientificName|scientificName rank:taxonRank status:taxonomicStatus "
    "kingdom phylum class order family genus iucn:iucnRedListCategory observer:recordedByID "
    "observer_name:recordedBy date:eventDate year month day time:eventTime "
    "interpreted:lastInterpreted latitude:decimalLatitude longitude:decimalLongitude "
    "uncertainty:coordinateUncertaintyInMeters withheld:informationWithheld "
    "generalized:dataGeneralizations elevation country:countryCode license holder:rightsHolder "
    "presence:occurrenceStatus dataset:datasetKey media:mediaType associated:associatedMedia"
)
MEDIA: Final = aliases(
    "occurrence:key|gbifID type format url:identifier|accessURI license:license|rights "
    "holder:rightsHolder|creator"
)
#: Row types of media, the preferred first: GBIF's and Audubon Core's, and GBIF's Simple Images.
_MEDIA_KINDS: Final = ("Multimedia", "Image")


@dataclass(frozen=True, slots=True)
class _Part:
    """A table of an archive, as `meta.xml` describes it."""

    core: bool
    kind: str
    """The last part of its row type."""
    files: list[str]
    form: dict[str, Any]


def _describe(part: ElementTree.Element) -> _Part:
    """A table's files, row type and form. The column `key` is its id, in an extension the core's
    id."""
    columns: dict[int, str] = {}
    defaults, files = {}, []
    core = part.tag.rpartition("}")[2] == "core"
    kind = part.get("rowType", "").rpartition("/")[2]
    for element in part.iter():
        tag, index = element.tag.rpartition("}")[2], element.get("index")
        if tag == "location":
            files.append(Path((element.text or "").strip()).name)
        elif tag == "id" or (tag == "coreid" and kind != "Occurrence"):
            columns[int(index or 0)] = "key"
        elif tag == "field":
            name = element.attrib["term"].rpartition("/")[2]
            if index is not None:
                columns.setdefault(int(index), name)
            if "default" in element.attrib:
                defaults[name] = element.attrib["default"]
    return _Part(core, kind, files, {
        "columns": [columns.get(place, "") for place in range(max(columns) + 1)],
        "defaults": defaults,
        "delimiter": part.get("fieldsTerminatedBy", ",").replace("\\t", "\t"),
        "quote": part.get("fieldsEnclosedBy", '"'),
        "skip": int(part.get("ignoreHeaderLines") or 0),
        "encoding": part.get("encoding") or "utf-8",
    })  # fmt: skip


def stage_archive(connection: Connection, path: Path, unpacked: Path) -> tuple[str, str]:
    """A Darwin Core archive (dwc.tdwg.org/text), as a folder or zip: any columns that its
    `meta.xml` describes.

    Observations are the core, or, if that is of another kind, its first extension of occurrences;
    further ones, such as GBIF's verbatim.txt, have them as they were submitted. Photos are the
    first extension of media, and for observations without any, their associatedMedia. All other
    tables are skipped, and their rows counted.
    """
    archive = unpack(path, unpacked, ".txt", ".csv", ".tsv", "meta.xml")
    try:
        parts = [_describe(part) for part in ElementTree.parse(archive / "meta.xml").getroot()]
    except (OSError, ElementTree.ParseError, ValueError, KeyError) as error:
        raise CurationRefused("meta.xml", f"can't be read: {error}") from error
    # The core comes first, wherever it is in the file.
    parts.sort(key=lambda part: not part.core)
    occurrences = next((part for part in parts if part.kind == "Occurrence"), None)
    media = next((part for kind in _MEDIA_KINDS for part in parts if part.kind == kind), None)
    if occurrences is None:
        raise CurationRefused("meta.xml", "names no file of occurrences")
    _stage_part(connection, archive, unpacked, "staged_occurrence", occurrences, OCCURRENCE)
    if media is not None:
        _stage_part(connection, archive, unpacked, "staged_media", media, MEDIA)
    for part in parts:
        if part not in (occurrences, media):
            for name in part.files:
                rows = _lines(archive, name) - part.form["skip"]
                reason = "a table that is not used"
                refuse(connection, file=name, reason=reason, rows=max(rows, 0), example=part.kind)
    shown = media.files[0] if media else ""
    return _finish(connection, occurrences.files[0], shown)


def _stage_part(
    connection: Connection, archive: Path, unpacked: Path, table: str, part: _Part, wanted: Names
) -> None:
    """Read all files of a table, one after the other."""
    form = {key: value for key, value in part.form.items() if key != "encoding"}
    for index, name in enumerate(part.files):
        if (file := find(archive, name)) is None:
            raise CurationRefused(name, "is named by meta.xml but isn't in the archive")
        file = in_utf8(file, unpacked, part.form["encoding"])
        into = f"{table}_more" if index else table
        stage_text(connection, into, file, wanted, **form)
        if index:
            connection.execute(f"INSERT INTO {table} FROM {into}; DROP TABLE {into}")


def _lines(archive: Path, name: str) -> int:
    """How many lines a file has; 0 where it isn't there."""
    if (file := find(archive, name)) is None:
        return 0
    opened = gzip.open if file.suffix == ".gz" else open
    count, last = 0, b"\n"
    with opened(file, "rb") as lines:
        while block := lines.read(1 << 20):
            count, last = count + block.count(b"\n"), block
    return count + (not last.endswith(b"\n"))


def stage_csv(connection: Connection, path: Path, unpacked: Path) -> tuple[str, str]:
    """The simple download: a tab-separated file, or a zip of it, and `multimedia.txt` beside."""
    file = path
    if path.suffix == ".zip":
        file = next(unpack(path, unpacked, ".csv").glob("*.csv"), path)
    stage_text(connection, "staged_occurrence", file, OCCURRENCE, required=("id",))
    return _finish(connection, file.name, _stage_media(connection, path.parent))


def stage_snapshot(connection: Connection, path: Path, _unpacked: Path) -> tuple[str, str]:
    """The Parquet snapshot: a folder of parts, with `multimedia.txt` among them if there is one."""
    stage_parquet(connection, "staged_occurrence", path, OCCURRENCE, required=("id",))
    return _finish(connection, path.name, _stage_media(connection, path))


def _stage_media(connection: Connection, beside: Path) -> str:
    if (file := find(beside, "multimedia.txt")) is None:
        return ""
    stage_text(connection, "staged_media", file, MEDIA, required=("occurrence", "url"))
    return file.name


_ASSOCIATED: Final = r"""
INSERT INTO staged_media BY NAME
SELECT occurrence, trim(address) AS url FROM (
    SELECT o.id AS occurrence, o.rowid AS row, unnest(string_split(o.associated, '|')) AS address
      FROM staged_occurrence o
     WHERE o.associated IS NOT NULL AND o.id NOT IN (
        SELECT m.occurrence FROM staged_media m WHERE m.occurrence IS NOT NULL)
) WHERE trim(address) LIKE 'http%' ORDER BY row
"""


def _finish(connection: Connection, occurrences: str, media: str) -> tuple[str, str]:
    if not media:
        connection.execute("CREATE OR REPLACE TABLE staged_media (occurrence VARCHAR, url VARCHAR)")
    connection.execute(_ASSOCIATED)
    [(count,)] = connection.execute("SELECT count(*) FROM staged_media").fetchall()
    connection.execute("ALTER TABLE staged_occurrence DROP COLUMN associated")
    if not media and not count:
        # Then we know only that observations have photos: enough to plan, not to fetch.
        connection.execute(
            "CREATE OR REPLACE TABLE staged_media AS SELECT id AS photo, id AS occurrence "
            "FROM staged_occurrence WHERE media LIKE '%StillImage%' ORDER BY rowid"
        )
    return occurrences, media or occurrences
