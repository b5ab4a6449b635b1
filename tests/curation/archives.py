"""Small made-up archives with the quirks of real ones."""

from __future__ import annotations

import csv
import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import duckdb

RESEARCH = "50c9509d-22c7-4a22-a47d-8c48425ef4a7"
PHOTOS = "https://inaturalist-open-data.s3.amazonaws.com/photos"
_TERMS = "http://rs.tdwg.org/dwc/terms"

COLUMNS = [
    *["license", "gbifID", "eventDate", "decimalLatitude", "decimalLongitude"],
    *["coordinateUncertaintyInMeters", "speciesKey", "species", "scientificName", "taxonKey"],
    *["taxonRank", "kingdom", "genus", "recordedBy", "recordedByID", "informationWithheld"],
    *["dataGeneralizations", "occurrenceStatus", "datasetKey", "mediaType", "lastInterpreted"],
    *["associatedMedia", "countryCode"],
]
MEDIA_COLUMNS = ["gbifID", "type", "format", "identifier", "license", "rightsHolder", "creator"]

FROG = {
    "speciesKey": "10",
    "species": "Rana temporaria",
    "scientificName": "Rana temporaria Linnaeus, 1758",
    "taxonKey": "11",
    "taxonRank": "SUBSPECIES",
    "kingdom": "Animalia",
    "genus": "Rana",
    "eventDate": "2021-05-01T10:20:30",
    "decimalLatitude": "52.5",
    "decimalLongitude": "13.4",
    "recordedBy": 'Ann "the frog',
    "lastInterpreted": "2024-01-01T00:00:00Z",
    "countryCode": "de",
    "license": "CC_BY_NC_4_0",
    "datasetKey": RESEARCH,
    "mediaType": "StillImage",
}

OCCURRENCES: list[dict[str, str]] = [
    {"gbifID": "1", **FROG},
    {"gbifID": "2", **FROG, "eventDate": "2021-05-01/2021-05-03"},
    {"gbifID": "3", **FROG, "eventDate": "2021-05-02T08:00/2021-05-02T09:00"},
    {"gbifID": "4", **FROG, "eventDate": "2021-05"},
    {"gbifID": "5", **FROG, "eventDate": "2031-05-01"},
    {"gbifID": "6", **FROG, "eventDate": "2021-05-01T23:20:30Z"},
    {"gbifID": "7", **FROG, "eventDate": "2021-02-30"},
    {"gbifID": "8", **FROG, "decimalLatitude": "0", "decimalLongitude": "0.0"},
    {"gbifID": "9", **FROG, "decimalLatitude": "151.2", "decimalLongitude": "-33.8"},
    {"gbifID": "10", **FROG, "decimalLatitude": "91", "decimalLongitude": "100"},
    {"gbifID": "11", **FROG, "decimalLatitude": "52,5", "decimalLongitude": "13,4"},
    {"gbifID": "12", **FROG, "decimalLongitude": "\\N"},
    {"gbifID": "13", **FROG, "informationWithheld": "Coordinate uncertainty increased to 28000m"},
    {"gbifID": "14", **FROG, "informationWithheld": "Field notes withheld"},
    {"gbifID": "15", **FROG, "coordinateUncertaintyInMeters": "28123"},
    {"gbifID": "16", **FROG, "dataGeneralizations": "Rounded to a 10 km grid"},
    {
        "gbifID": "17",
        **FROG,
        "speciesKey": "20",
        "species": "<i>Quercus</i>&nbsp;&times; hispanica",
    },
    {
        "gbifID": "18",
        **FROG,
        "speciesKey": "",
        "species": "",
        "scientificName": "Bufo Garsault, 1764",
        "taxonKey": "30",
        "taxonRank": "GENUS",
        "license": "http://creativecommons.org/publicdomain/zero/1.0/legalcode",
        "recordedByID": "https://orcid.org/0000-0001",
    },
    {"gbifID": "1", **FROG, "species": "Rana other"},
    {"gbifID": "19", **FROG, "occurrenceStatus": "ABSENT"},
    {"gbifID": "20", "eventDate": "2021-05-01"},
    {"gbifID": "", **FROG},
]
"""Rows 1 to 18 are read; then one of each reason to refuse a row."""

PLACES_LEFT_OUT, DATES_LEFT_OUT = 4, 5


def _media(occurrence: str, photo: str, **more: str) -> dict[str, str]:
    return {
        "gbifID": occurrence,
        "type": "StillImage",
        "format": "image/jpeg",
        "identifier": f"{PHOTOS}/{photo}/original.jpg",
        "license": "http://creativecommons.org/licenses/by-nc/4.0/",
        "rightsHolder": "Ann",
        **more,
    }


MEDIA: list[dict[str, str]] = [
    _media("1", "100"),
    _media("1", "99", license="https://creativecommons.org/licenses/by/3.0/deed.en"),
    _media("2", "102", type="Sound", format="audio/mpeg"),
    _media("2", "103", type="", format="video/mp4"),
    _media("2", "104", license="CC-BY-NC-SA 4.0 (Int)"),
    _media("3", "105", license="© Ann, all rights reserved"),
    _media("4", "106", license=""),
    _media("18", "107", license="CC0", rightsHolder="Secret Name"),
    _media("5", "108", identifier=r"C:\Users\ann\frog.jpg"),
    _media("19", "109"),
    _media("999", "110"),
    _media("6", "100"),
    _media("7", "111", identifier="https://example.org/frog.PNG", format="", rightsHolder=""),
]
"""Photos 100, 99, 104 to 107 and a hashed one are read."""


def _line(row: dict[str, str], columns: list[str]) -> bytes:
    return "\t".join(row.get(column, "") for column in columns).encode()


def _fields(columns: list[str], key: str, skip: str = "") -> str:
    return f'<{key} index="{columns.index("gbifID")}"/>' + "".join(
        f'<field index="{index}" term="{_TERMS}/{column}"/>'
        for index, column in enumerate(columns)
        if column != skip
    )


def gbif_archive(
    folder: Path,
    occurrences: list[dict[str, str]] = OCCURRENCES,
    media: list[dict[str, str]] = MEDIA,
    *,
    broken: bool = True,
    zipped: bool = False,
) -> Path:
    """Write a Darwin Core archive; a broken one has lines that no reader can use."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["\t".join(COLUMNS).encode(), *(_line(row, COLUMNS) for row in occurrences)]
    if broken:
        lines.append(_line({"gbifID": "31", **FROG, "recordedBy": "a\ttab"}, COLUMNS))
        lines.append(_line({"gbifID": "32", **FROG}, COLUMNS).rpartition(b"\t")[0])
        lines.append(
            _line({"gbifID": "33", **FROG, "recordedBy": "@"}, COLUMNS).replace(b"@", b"\xe9")
        )
    (folder / "occurrence.txt").write_bytes(b"\xef\xbb\xbf" + b"\n".join(lines) + b"\n")
    rows = ["\t".join(MEDIA_COLUMNS).encode(), *(_line(row, MEDIA_COLUMNS) for row in media)]
    (folder / "multimedia.txt").write_bytes(b"\n".join(rows) + b"\n")
    dialect = (
        'encoding="UTF-8" fieldsTerminatedBy="\\t" linesTerminatedBy="\\n" fieldsEnclosedBy="" '
        'ignoreHeaderLines="1"'
    )
    (folder / "meta.xml").write_text(
        f'<archive xmlns="http://rs.tdwg.org/dwc/text/"><extension {dialect} '
        'rowType="http://rs.gbif.org/terms/1.0/Multimedia"><files><location>multimedia.txt'
        f"</location></files>{_fields(MEDIA_COLUMNS, 'coreid')}</extension><core {dialect} "
        f'rowType="{_TERMS}/Occurrence"><files><location>occurrence.txt</location></files>'
        f'{_fields(COLUMNS, "id")}<field default="12" term="{_TERMS}/elevation"/></core></archive>'
    )
    if not zipped:
        return folder
    target = folder.with_suffix(".zip")
    with zipfile.ZipFile(target, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    return target


def gbif_csv(folder: Path) -> Path:
    """Write the simple download."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [b"\t".join(c.encode() for c in COLUMNS), *(_line(r, COLUMNS) for r in OCCURRENCES)]
    (folder / "simple.csv").write_bytes(b"\r\n".join(lines) + b"\r\n")
    return folder / "simple.csv"


def gbif_snapshot(folder: Path) -> Path:
    """Write a snapshot of two parts, with lists, as GBIF's have."""
    (folder / "occurrence.parquet").mkdir(parents=True)
    for part, row in enumerate(OCCURRENCES[:2]):
        duckdb.sql(
            f"COPY (SELECT {row['gbifID']} AS gbifid, 'Rana temporaria' AS species, "
            "10 AS specieskey, TIMESTAMP '2021-05-01 10:20:30' AS eventdate, "
            "['Ann', 'Bob'] AS recordedby, 52.5 AS decimallatitude, "
            "13.4 AS decimallongitude, 'CC_BY_4_0' AS license, "
            f"['StillImage'] AS mediatype) TO '{folder / 'occurrence.parquet' / f'00000{part}'}' "
            "(FORMAT parquet)"
        )
    return folder / "occurrence.parquet"


def _gzip(path: Path, header: str, *rows: str) -> None:
    lines = ["\t".join(line.split("|")) for line in (header, *rows)]
    path.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n"))


def inaturalist(folder: Path) -> Path:
    """Write iNaturalist's open data; the subspecies 6 belongs to the species 5."""
    folder.mkdir(parents=True)
    _gzip(
        folder / "observations.csv.gz",
        "observation_uuid|observer_id|latitude|longitude|positional_accuracy|taxon_id"
        "|quality_grade|observed_on|anomaly_score",
        "a|1|52.5|13.4|28200|6|research|2021-05-01|",
        "b|2|||5|5|needs_id||",
        "c|2|1|1|5|404|casual|2021-05-01|",
        "d|2|1|1|5|\\N|casual|2021-05-01|",
    )
    _gzip(
        folder / "photos.csv.gz",
        "photo_uuid|photo_id|observation_uuid|observer_id|extension|license|width|height|position",
        "u1|71|a|1|jpeg|CC-BY-NC|2048|1536|2",
        "u2|70|a|1|JPG|CC-BY-NC|2048|1536|1",
        "u3|72|b|2|jpg|CC0|10|10|0",
        "u4|73|c|2|jpg|CC0|10|10|0",
    )
    _gzip(
        folder / "taxa.csv.gz",
        "taxon_id|ancestry|rank_level|rank|name|active",
        "48460||100|stateofmatter|Life|t",
        "1|48460|70|kingdom|Animalia|t",
        "2|48460/1|60|phylum|Chordata|t",
        "3|48460/1/2|30|family|Ranidae|t",
        "4|48460/1/2/3|20|genus|Rana|t",
        "5|48460/1/2/3/4|10|species|Rana temporaria|t",
        "6|48460/1/2/3/4/5|5|subspecies|Rana temporaria parvipalmata|t",
    )
    _gzip(
        folder / "observers.csv.gz", "observer_id|login|name", '1|ann|"Ann" the frog', "2|bob|Bob B"
    )
    return folder


def crypticbio(path: Path) -> Path:
    """Write CrypticBio's columns but the family, which is missing."""
    duckdb.sql(
        "COPY (SELECT * FROM (VALUES "
        "('Rana temporaria', ['Grass frog', 'Common frog'], 'Animalia', '1', '5', '2021', 52.5, "
        f"13.4, ['Rana arvalis'], '{PHOTOS}/500/original.jpg'), "
        "('Rana arvalis', ['Moor frog'], 'Animalia', NULL, '5', '2021', NULL, NULL, "
        "['Rana temporaria'], 'https://observation.org/photos/9.jpg')) AS t(scientificName, "
        "vernacularName, kingdom, day, month, year, decimalLatitude, decimalLongitude, "
        f"crypticGroup, url)) TO '{path}' (FORMAT parquet)"
    )
    return path


def coco(path: Path, names: list[str], images: list[tuple[int, int]]) -> Path:
    """Write a corpus of these categories; an image is (id, category)."""
    content = {
        "categories": [{"id": place, "name": name} for place, name in enumerate(names)],
        "images": [
            {"id": i, "file_name": f"{i}.jpg", "license": 1} for i in {i for i, _ in images}
        ],
        "annotations": [
            {"id": n, "image_id": image, "category_id": category}
            for n, (image, category) in enumerate(images)
        ],
        "licenses": [{"id": 1, "name": "Attribution-NonCommercial-NoDerivs License", "url": ""}],
    }
    path.write_text(json.dumps(content))
    return path


DEPLOYMENT = {
    "deploymentID": "d1",
    "locationID": "l1",
    "latitude": "52.5",
    "longitude": "13.4",
    "coordinateUncertainty": "100",
    "deploymentStart": "2021-05-01T00:00:00+02:00",
    "deploymentEnd": "2021-06-01T00:00:00+02:00",
}


def shot(media: str, second: int = 0, **more: str) -> dict[str, str]:
    """A row of media.csv, in the first minute of a noon."""
    return {
        "mediaID": media,
        "deploymentID": "d1",
        "timestamp": f"2021-05-02T12:00:{second:02d}+02:00",
        "filePath": f"https://example.org/{media}.jpg",
        "filePublic": "true",
        "fileMediatype": "image/jpeg",
        **more,
    }


def sighting(media: str = "", kind: str = "animal", name: str = "", **more: str) -> dict[str, str]:
    """A row of observations.csv: of a photo, or of the event of the seconds 30 to 39."""
    return {
        "deploymentID": "d1",
        "mediaID": media,
        "eventStart": "2021-05-02T10:00:30Z",
        "eventEnd": "2021-05-02T10:00:39Z",
        "observationLevel": "media" if media else "event",
        "observationType": kind,
        "scientificName": name,
        "classificationMethod": "human",
        **more,
    }


def camtrap(
    folder: Path,
    media: list[dict[str, str]],
    observations: list[dict[str, str]],
    deployments: list[dict[str, str]] | None = None,
    **more: Any,
) -> Path:
    """Write a package of Camtrap DP 1.0 with columns that nobody asked for; `more` goes into its
    datapackage.json.
    """
    folder.mkdir(parents=True)
    observed = [
        {"observationID": f"o{number}", "observationComments": 'a "note", long', **row}
        for number, row in enumerate(observations)
    ]
    tables = {"deployments": deployments or [DEPLOYMENT], "media": media, "observations": observed}
    for name, rows in tables.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
            writer.writeheader()
            writer.writerows(rows)
    schemas = "https://raw.githubusercontent.com/tdwg/camtrap-dp/1.0"
    fox = {"kingdom": "Animalia", "class": "Mammalia", "vernacularNames": {"eng": "red fox"}}
    package = {
        "profile": f"{schemas}/camtrap-dp-profile.json",
        "resources": [
            {
                "name": name,
                "path": f"{name}.csv",
                "profile": "tabular-data-resource",
                "schema": f"{schemas}/{name}-table-schema.json",
            }
            for name in tables
        ],
        "contributors": [{"title": "Ann"}, {"title": "A Forest", "role": "rightsHolder"}],
        "licenses": [
            {"name": "CC0-1.0", "scope": "data"},
            {"name": "CC-BY-4.0", "scope": "media"},
        ],
        "taxonomic": [
            {"scientificName": "Vulpes vulpes", "taxonRank": "species", **fox},
            {"scientificName": "Cervidae", "taxonRank": "family"},
        ],
        **more,
    }
    (folder / "datapackage.json").write_text(json.dumps(package))
    return folder


def backbone(folder: Path) -> Path:
    """Write GBIF's backbone: `Lithobates pipiens` has the synonym `Rana pipiens`."""
    folder.mkdir(parents=True)
    taxa = [
        "taxonID|acceptedNameUsageID|scientificName|canonicalName|taxonRank|taxonomicStatus|kingdom"
        "|family",
        "10||Rana temporaria L., 1758|Rana temporaria|species|accepted|Animalia|Ranidae",
        "12||Lithobates pipiens (Sch.)|Lithobates pipiens|species|accepted|Animalia|Ranidae",
        "13|12|Rana pipiens Schreber|Rana pipiens|species|synonym|Animalia|Ranidae",
        "14|12|Rana brachycephala Cope|Rana brachycephala|species|synonym|Animalia|Ranidae",
        "15||Bufo bufo (L.)|Bufo bufo|species|accepted|Animalia|Bufonidae",
    ]
    names = [
        "taxonID|vernacularName|language|country|countryCode",
        "10|Grasfrosch|de||",
        "10|Rã-vermelha|pt||BR",
        "10|Rã|pt||PT",
        "15|Erdkröte|de||",
        '12|Leopard "frog|en||',
    ]
    for name, rows in (("Taxon.tsv", taxa), ("VernacularName.tsv", names)):
        (folder / name).write_text("\n".join(row.replace("|", "\t") for row in rows) + "\n")
    return folder


def inaturalist_taxonomy(folder: Path) -> Path:
    """Write iNaturalist's archive of taxa, with the names of two languages."""
    folder.mkdir(parents=True)
    (folder / "taxa.csv").write_text(
        "id,taxonID,kingdom,family,genus,specificEpithet,scientificName,taxonRank\n"
        "5,https://inaturalist.org/t/5,Animalia,Ranidae,Rana,temporaria,Rana temporaria,species\n"
        '9,https://inaturalist.org/t/9,Animalia,"Bufonidae",Bufo,bufo,Bufo bufo,species\n'
    )
    header = "id,vernacularName,language,locality,countryCode\n"
    (folder / "VernacularNames-german.csv").write_text(header + '5,"Frosch, der",de,,\n')
    (folder / "VernacularNames-english.csv").write_text(header + '5,"The ""frog""",en,,\n')
    return folder


def of_photographs(coco: Path, folder: Path, address: str, *, observed: bool = False) -> Path:
    """Write a COCO file's images, at addresses below `address`, as a Darwin Core archive; with days
    of 2022 and places, made up, where `observed`.
    """
    content = json.loads(coco.read_text())
    categories = {one["id"]: one for one in content["categories"]}
    labels = {one["image_id"]: categories[one["category_id"]] for one in content["annotations"]}
    license_url = content["licenses"][0]["url"]
    occurrences, media = [], []
    for number, image in enumerate(content["images"]):
        name = labels[image["id"]]["name"]
        seen = {
            "eventDate": f"2022-{number % 12 + 1:02d}-05T10:{number % 60:02d}:00",
            "decimalLatitude": f"{40 + number / 10}",
            "decimalLongitude": f"{-3 - number / 20}",
            "recordedBy": f"Person {number % 9}",
        }
        occurrences.append(
            {
                "gbifID": str(image["id"]),
                "speciesKey": name,
                "species": name,
                "kingdom": labels[image["id"]]["kingdom"],
                "genus": labels[image["id"]]["genus"],
                **(seen if observed else {}),
            }
        )
        media.append(
            {
                "gbifID": str(image["id"]),
                "identifier": f"{address}/{image['file_name']}",
                "license": license_url,
            }
        )
    return gbif_archive(folder, occurrences, media, broken=False)
