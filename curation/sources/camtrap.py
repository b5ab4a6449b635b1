"""Camtrap DP 1.0: a data package of camera traps, as a folder or zip (camtrap-dp.tdwg.org)."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

from duckdb import DuckDBPyConnection as Connection

from core.optional import optional
from curation.sources.darwin_core import RANKS
from curation.sources.tabular import COMMAS, aliases, find, quoted, stage_text, unpack
from curation.tables import CurationRefused, refuse

DESCRIPTOR: Final = "datapackage.json"
#: Table schemas of the fields that are read. Those that a package names are web addresses.
SCHEMAS: Final[dict[str, dict[str, Any]]] = json.loads(
    (resources.files("curation") / "sources" / "camtrap-dp.json").read_text()
)

#: About a kilometer; finer ones are the precision of devices and files.
_COARSE_DEGREES: Final = 0.01


class _Package(NamedTuple):
    """What a package's description says."""

    files: dict[str, Path]
    """The file of each table."""
    licenses: list[dict[str, str]]
    license: str | None
    """The license of media, an address or a name, or all of several."""
    holder: str | None
    blurred: str | None
    """How locations were rounded, where that may hide them."""
    taxa: dict[str, dict[str, Any]]
    """By scientific name."""


def stage(
    connection: Connection, path: Path, unpacked: Path, *, blank: bool = False, human: bool = False
) -> tuple[str, str]:
    """Read a package; photos of an event and a species are one observation.

    What a photo shows is said by its own observations, else by those of the events at that time,
    people's before machines'; of several species the first is taken. Videos, files that are not
    public, and photos without an animal are left out, also photos with a person on them. `blank`
    keeps blank photos, as the taxon Blank, and `human` those with people. The deployment stands
    for the observer. Raises CurationRefused with file, row and field.
    """
    archive = unpack(path, unpacked, ".json", ".csv", ".csv.gz")
    package = _describe(archive)
    _check(package, archive)
    for name, file in package.files.items():
        schema = SCHEMAS[name]
        wanted = aliases(" ".join(field["name"] for field in schema["fields"]))
        missing = schema["missingValues"]
        stage_text(connection, f"raw_{name}", file, wanted, missing=missing, **COMMAS)
    _stage_taxa(connection, package.taxa)
    connection.execute(_SEEN, {"blank": blank, "human": human, "folder": path.is_dir()})
    connection.execute(_OWN_IDS)
    media = package.files["media"].name
    for reason, count, example in connection.execute(_COUNTS).fetchall():
        refuse(connection, file=media, reason=reason, rows=count, example=example)
    connection.execute(_STAGE_MEDIA, {"license": package.license, "holder": package.holder})
    connection.execute(_STAGE_OCCURRENCES, {"blurred": package.blurred})
    for table in ("seen", "raw_taxa", *(f"raw_{name}" for name in SCHEMAS)):
        connection.execute(f"DROP TABLE {table}")
    return package.files["observations"].name, media


def _describe(archive: Path) -> _Package:
    try:
        given = json.loads((archive / DESCRIPTOR).read_text(encoding="utf-8"))
        if not re.search(r"camtrap-dp/1\.0", profile := str(given.get("profile"))):
            raise CurationRefused(DESCRIPTOR, f"isn't of Camtrap DP 1.0; its profile is {profile}")
        files = {}
        paths = {one["name"]: str(one.get("path")) for one in given["resources"]}
        for name in SCHEMAS:
            file = find(archive, paths[name], Path(paths[name]).name)
            if file is None:
                raise CurationRefused(DESCRIPTOR, f"{name}: {paths[name]} isn't in the package")
            files[name] = file
        people = [one for one in given["contributors"] if one.get("role") == "rightsHolder"]
        holders = [one["title"] for one in people or given.get("sources") or []]
        licenses = given.get("licenses") or []
        terms = [one.get("path") or one.get("name") for one in licenses if one["scope"] == "media"]
        taxa = {one["scientificName"]: one for one in given["taxonomic"]}
        license = " / ".join(filter(None, terms)) or None
        holder = ", ".join(holders) or None
        precision = float(given.get("coordinatePrecision") or 0)
        blurred = f"rounded to {precision:g} degrees" if precision >= _COARSE_DEGREES else None
        return _Package(files, licenses, license, holder, blurred, taxa)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else error
        raise CurationRefused(DESCRIPTOR, f"isn't a Camtrap DP's: {what}") from error


def _check(package: _Package, archive: Path) -> None:
    """Let frictionless check the tables, row by row; its first error is refused. Raises
    NotInstalled without it.
    """
    with optional("camtrap"):
        from frictionless import FrictionlessException, Package
    tables = [
        {"name": name, "path": str(file.relative_to(archive)), "schema": SCHEMAS[name]}
        for name, file in package.files.items()
    ]
    described = {"resources": tables, "licenses": package.licenses}
    try:
        checked = Package.from_descriptor(described, basepath=str(archive))
        report = checked.validate(limit_errors=1)
    except FrictionlessException as error:
        raise CurationRefused(DESCRIPTOR, [*error.reasons, error.error][0].note) from error
    if wrong := next((task for task in report.tasks if task.errors), None):
        raise CurationRefused(package.files[wrong.name].name, _sentence(wrong.errors[0]))


def _sentence(error: Any) -> str:
    """An error of frictionless, with row and field where it names them."""
    names = getattr(error, "field_names", None) or [getattr(error, "field_name", "")]
    row = getattr(error, "row_number", 1)
    where = f"row {row}" + (f", field {names[0]}" if names[0] else "")
    if error.type == "missing-label":
        return f"{where}: there is no such column"
    if error.type == "foreign-key":
        return f"{where}: “{error.field_cells[0]}” isn't in {error.reference_name}"
    value = f"“{error.cell}”: " if getattr(error, "cell", None) else ""
    return f"{where}: {value}{error.note or error.message}"


def _stage_taxa(connection: Connection, taxa: dict[str, dict[str, Any]]) -> None:
    columns = ("scientificName", "taxonRank", *RANKS)
    declared = ", ".join(f"{quoted(column)} VARCHAR" for column in (*columns, "vernacular"))
    connection.execute(f"CREATE OR REPLACE TABLE raw_taxa ({declared})")
    for taxon in taxa.values():
        names = taxon.get("vernacularNames") or {}
        values = [*(taxon.get(column) for column in columns), names.get("eng") or names.get("en")]
        holes = ", ".join("?" * len(values))
        connection.execute(f"INSERT INTO raw_taxa VALUES ({holes})", [v or None for v in values])


# Photos meet events by deployment and day: by deployment alone, pairs grow with their product.
_SEEN: Final = r"""
CREATE OR REPLACE TABLE seen AS
WITH media AS (
    SELECT *, rowid AS row, epoch_us(timestamp::TIMESTAMPTZ) AS taken FROM raw_media
), observed AS (
    SELECT *, rowid AS row, epoch_us(eventStart::TIMESTAMPTZ) AS starts,
           epoch_us(eventEnd::TIMESTAMPTZ) AS ends, mediaID IS NULL AS by_event,
           coalesce(eventID, mediaID, concat(deploymentID, ' ', eventStart)) AS event,
           classificationMethod IS NOT DISTINCT FROM 'machine' AS by_machine,
           observationType = 'unclassified'
               OR observationType = 'animal' AND scientificName IS NULL AS vague
      FROM raw_observations
), daily AS (
    SELECT * EXCLUDE (mediaID), unnest(range(starts // 86400000000, ends // 86400000000 + 1)) AS day
      FROM observed WHERE by_event
), said AS (
    FROM observed WHERE NOT by_event
     UNION ALL BY NAME
    SELECT media.mediaID, daily.* EXCLUDE (day) FROM media JOIN daily
        ON daily.deploymentID = media.deploymentID AND day = taken // 86400000000
       AND taken BETWEEN starts AND ends
), weighed AS (
    SELECT *, rank() OVER (PARTITION BY mediaID ORDER BY vague, by_machine, by_event) AS place,
           CASE observationType WHEN 'animal' THEN scientificName
           WHEN 'human' THEN if($human, coalesce(scientificName, 'Homo sapiens'), NULL)
           WHEN 'blank' THEN if($blank, 'Blank', NULL) END AS name
      FROM said
), judged AS (
    SELECT mediaID,
           bool_or(observationType = 'human' OR scientificName LIKE 'Homo sapiens%') AS human,
           list(observationType) FILTER (place = 1) AS types,
           arg_min({'name': name, 'event': event}, (observationType <> 'animal', row))
               FILTER (place = 1 AND name IS NOT NULL) AS first,
           count(DISTINCT name) FILTER (place = 1 AND observationType = 'animal') AS species
      FROM weighed GROUP BY mediaID
)
SELECT media.*, first.name, first.event, species, fileMediatype LIKE 'image/%' AS photo,
       regexp_matches(filePath, '^https?://') AS web, latitude, longitude, coordinateUncertainty,
       lower(timestampIssues) IN ('true', '1') AS issues, CASE
       WHEN lower(filePublic) NOT IN ('true', '1') THEN 'a file that is not public'
       WHEN NOT photo THEN NULL  -- counted with other sources' videos
       WHEN human AND NOT $human THEN 'a photo with a person'
       WHEN types IS NULL THEN 'a photo without an observation'
       WHEN first IS NULL AND list_contains(types, 'vehicle') THEN 'a photo of a vehicle'
       WHEN first IS NULL AND list_contains(types, 'animal')
       THEN 'a photo of an animal without a name'
       WHEN first IS NULL AND list_contains(types, 'blank') THEN 'a blank photo'
       WHEN first IS NULL THEN 'a photo whose content is unknown or unclassified'
       WHEN NOT web AND NOT $folder THEN 'a photo inside a zip: unpack the package'
       END AS reason
  FROM media JOIN raw_deployments USING (deploymentID) LEFT JOIN judged USING (mediaID)
"""

# An event's species, and another deployment's event of that id, are observations of their own.
_OWN_IDS: Final = """
UPDATE seen SET event = own FROM (
    SELECT row AS its_row, concat_ws(' · ', event, deploymentID, name) AS own FROM seen
     WHERE photo AND reason IS NULL
   QUALIFY count(DISTINCT (deploymentID, name)) OVER (PARTITION BY event) > 1
) AS several WHERE seen.row = its_row
"""

_COUNTS: Final = """
SELECT reason, count(*), arg_min(mediaID, row) FROM seen WHERE reason IS NOT NULL GROUP BY reason
 UNION ALL
SELECT 'several species on a photo: the first is taken', count(*), arg_min(mediaID, row) FROM seen
 WHERE photo AND reason IS NULL AND species > 1 HAVING count(*) > 0
 UNION ALL
SELECT 'date left out: the deployment has timestamp issues', count(DISTINCT event),
       min(deploymentID) FROM seen WHERE photo AND reason IS NULL AND issues HAVING count(*) > 0
 ORDER BY 1
"""

_STAGE_MEDIA: Final = """
CREATE OR REPLACE TABLE staged_media AS
SELECT mediaID AS photo, event AS occurrence, if(web, filePath, NULL) AS url,
       if(web, NULL, filePath) AS file, fileMediatype AS format,
       $license::VARCHAR AS license, $holder::VARCHAR AS holder
  FROM seen WHERE reason IS NULL
 ORDER BY lower(favorite) IN ('true', '1') DESC NULLS LAST, taken, fileName, row;
"""

_STAGE_OCCURRENCES: Final = rf"""
CREATE OR REPLACE TABLE staged_occurrence AS
WITH one AS (
    SELECT event AS id, any_value(name) AS name, any_value(deploymentID) AS deployment,
           any_value(latitude) AS latitude, any_value(longitude) AS longitude,
           any_value(coordinateUncertainty) AS uncertainty, min(row) AS row,
           arg_min(timestamp, taken) FILTER (issues IS NOT TRUE) AS date
      FROM seen WHERE photo AND reason IS NULL GROUP BY event
)
SELECT one.* EXCLUDE (row), deployment AS observer, taxonRank AS rank,
       $blurred::VARCHAR AS generalized,
       if(coalesce(rank, 'species') IN ('species', 'subspecies'), nullif(trim(regexp_extract(name,
           '^\p{{Lu}}[\p{{L}}-]+ (?:[×x] ?)?[\p{{Ll}}-]+(?: |$)')), ''), NULL) AS species,
       if(rank = 'subspecies', NULL, vernacular) AS vernacular,
       {", ".join(map(quoted, RANKS))}
  FROM one LEFT JOIN raw_taxa ON scientificName = name ORDER BY one.row;
"""
