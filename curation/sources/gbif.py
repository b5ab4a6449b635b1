"""GBIF's downloads: Darwin Core archives, simple CSV, and the Parquet snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from duckdb import DuckDBPyConnection as Connection

from curation.errors import CurationRefused
from curation.sources.tabular import aliases, find, in_utf8, stage_parquet, stage_text, unpack

OCCURRENCE: Final = aliases(
    "id:key|gbifID|occurrenceID taxon:acceptedTaxonKey|taxonKey|taxonID species_id:speciesKey "
    "species name:acceptedScientificName|scientificName rank:taxonRank status:taxonomicStatus "
    "kingdom phylum class order family genus iucn:iucnRedListCategory observer:recordedByID "
    "observer_name:recordedBy date:eventDate year month day time:eventTime "
    "interpreted:lastInterpreted latitude:decimalLatitude longitude:decimalLongitude "
    "uncertainty:coordinateUncertaintyInMeters withheld:informationWithheld "
    "generalized:dataGeneralizations elevation country:countryCode license holder:rightsHolder "
    "presence:occurrenceStatus dataset:datasetKey media:mediaType"
)
MEDIA: Final = aliases(
    "occurrence:key|gbifID type format url:identifier|accessURI license:license|rights "
    "holder:rightsHolder|creator"
)


def _describe(part: ElementTree.Element) -> tuple[str, str, dict[str, Any]]:
    """A data file's name, type and form as `meta.xml` tells them; its id is the column `key`."""
    columns: dict[int, str] = {}
    defaults, location = {}, ""
    for element in part.iter():
        tag, index = element.tag.rpartition("}")[2], element.get("index")
        if tag == "location":
            location = Path((element.text or "").strip()).name
        elif tag in ("id", "coreid"):
            columns[int(index or 0)] = "key"
        elif tag == "field":
            name = element.attrib["term"].rpartition("/")[2]
            if index is not None:
                columns.setdefault(int(index), name)
            if "default" in element.attrib:
                defaults[name] = element.attrib["default"]
    return location, part.get("rowType", "").rpartition("/")[2], {
        "columns": [columns.get(place, "") for place in range(max(columns) + 1)],
        "defaults": defaults,
        "delimiter": part.get("fieldsTerminatedBy", ",").replace("\\t", "\t"),
        "quote": part.get("fieldsEnclosedBy", '"'),
        "skip": int(part.get("ignoreHeaderLines") or 0),
        "encoding": part.get("encoding") or "utf-8",
    }  # fmt: skip


def stage_archive(connection: Connection, path: Path, unpacked: Path) -> tuple[str, str]:
    """A Darwin Core archive, as a folder or zip: any columns that its `meta.xml` describes."""
    archive = unpack(path, unpacked, ".txt", ".csv", ".tsv", "meta.xml")
    names = {"Occurrence": "", "Multimedia": ""}
    try:
        described = [_describe(part) for part in ElementTree.parse(archive / "meta.xml").getroot()]
    except (OSError, ElementTree.ParseError, ValueError, KeyError) as error:
        raise CurationRefused("meta.xml", f"can't be read: {error}") from error
    for name, kind, form in described:
        if kind not in names:
            continue
        if (file := find(archive, name)) is None:
            raise CurationRefused(name, "is named by meta.xml but isn't in the archive")
        table, wanted = (
            ("staged_occurrence", OCCURRENCE) if kind == "Occurrence" else ("staged_media", MEDIA)
        )
        file = in_utf8(file, unpacked, form.pop("encoding"))
        stage_text(connection, table, file, wanted, **form)
        names[kind] = name
    if not names["Occurrence"]:
        raise CurationRefused("meta.xml", "names no file of occurrences")
    return _finish(connection, names["Occurrence"], names["Multimedia"])


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
    if (found := find(beside, "multimedia.txt")) is None:
        return ""
    stage_text(connection, "staged_media", found, MEDIA, required=("occurrence", "url"))
    return found.name


def _finish(connection: Connection, occurrences: str, media: str) -> tuple[str, str]:
    if not media:
        # What is known then is only that an observation has a photo: enough to plan, not to fetch.
        connection.execute(
            "CREATE OR REPLACE TABLE staged_media AS SELECT id AS photo, id AS occurrence "
            "FROM staged_occurrence WHERE media LIKE '%StillImage%' ORDER BY rowid"
        )
    return occurrences, media or occurrences
