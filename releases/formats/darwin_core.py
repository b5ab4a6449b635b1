"""The judged photos as observations: a Darwin Core Archive of the validation split, and one of all.

    darwin_core/val/   the photos that were judged for the queries of the validation split
    darwin_core/all/   those of both splits; where test labels are hidden nothing of it is open

Each is an archive by itself, for GBIF's tools, python-dwca-reader and others:

    occurrence.csv    the core: one observation for each judged photo of an organism, by image id
    measurement.csv   MeasurementOrFact: whether the photo is relevant to a query, for each judged
                      pair of these photos, by image id and query id
    multimedia.csv    Multimedia: the photos that have a public address
    meta.xml          which column is which term
    eml.xml           about the archive, by GBIF's metadata profile 1.3

A photo whose species isn't known, or that is flagged to show no organism, is no observation. An
occurrenceID is made of what the photo is in its source (data set, id there, file's name), so that
it stays from release to release and is the same for everybody who took in that data set. Columns
of our own (image_path; query_id, supercategory, category, split) have no term, and readers pass
over them. Runs of white space are one blank.

Archives: dwc.tdwg.org/text; EML: github.com/gbif/eml-profile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5
from xml.etree.ElementTree import Element, SubElement, indent, tostring
from xml.sax.saxutils import escape

import numpy as np

from core.licenses import license_of
from releases.formats.base import Files
from releases.formats.writing import csv_value
from releases.snapshot.snapshot import Header, Snapshot, SnapshotImage

DWC: Final = "http://rs.tdwg.org/dwc/terms/"
DC: Final = "http://purl.org/dc/terms/"
_PHOTOS: Final = uuid5(NAMESPACE_URL, "urn:inquire-annotator:photo")

WriteRow = Callable[[Iterable[Any]], None]


@dataclass(frozen=True, slots=True)
class Table:
    """A file of the archive, whose first column is the occurrenceID."""

    file: str
    row_type: str
    terms: tuple[str, ...]
    """The columns after it that are terms: of Dublin Core those in _DUBLIN_CORE."""
    own: tuple[str, ...] = ()
    """Further columns, which have no term."""


_DUBLIN_CORE: Final = ("license", "rightsHolder", "type", "identifier")
OCCURRENCE: Final = Table(
    "occurrence.csv",
    f"{DWC}Occurrence",
    ("catalogNumber", "otherCatalogNumbers", "basisOfRecord", "occurrenceStatus", "scientificName",
     "kingdom", "phylum", "class", "order", "family", "genus", "taxonRank", "vernacularName",
     "eventDate", "decimalLatitude", "decimalLongitude", "geodeticDatum",
     "coordinateUncertaintyInMeters", "associatedMedia", "datasetName", "license", "rightsHolder"),
    ("image_path",),
)  # fmt: skip
MEASUREMENT: Final = Table(
    "measurement.csv",
    f"{DWC}MeasurementOrFact",
    ("measurementID", "measurementType", "measurementValue", "measurementMethod",
     "measurementRemarks"),
    ("query_id", "supercategory", "category", "split"),
)  # fmt: skip
MULTIMEDIA: Final = Table(
    "multimedia.csv",
    "http://rs.gbif.org/terms/1.0/Multimedia",
    ("type", "identifier", "license", "rightsHolder"),
)
TABLES: Final = (OCCURRENCE, MEASUREMENT, MULTIMEDIA)


def write(snapshot: Snapshot, files: Files) -> None:
    """Write the archive; without judged photos of organisms it holds the columns alone."""
    part = "val" if files.labels else "all"
    folder = f"darwin_core/{part}"
    _write_tables(snapshot, files, folder)
    files.text(f"{folder}/meta.xml", [_meta()])
    files.text(f"{folder}/eml.xml", [_eml(snapshot.header, part)])


def _write_tables(snapshot: Snapshot, files: Files, folder: str) -> None:
    """Write the tables in one pass over the images; holds only the qrels in memory."""
    qrels = snapshot.qrels()
    header = snapshot.header
    pair_queries = qrels.pair_queries
    order = np.lexsort((pair_queries, qrels.image_ids))
    image_ids = qrels.image_ids[order]
    with ExitStack() as stack:
        occurrences, measurements, media = (
            stack.enter_context(_rows_of(table, files, folder)) for table in TABLES
        )
        for image in snapshot.images():
            ends = np.searchsorted(image_ids, [image.image_id, image.image_id + 1])
            judged = order[slice(*ends)]
            if not len(judged) or not image.scientific_name or image.no_organism:
                continue
            photo = _photo(image, header)
            facts = _observation(image, header) | {"associatedMedia": image.address}
            if not image.dataset:
                facts["otherCatalogNumbers"] = ""
            occurrences((photo.urn, *(facts[term] for term in OCCURRENCE.terms), image.file_name))
            for query_id, relevant in zip(
                pair_queries[judged].tolist(), qrels.relevant[judged].tolist(), strict=True
            ):
                query = snapshot.queries[query_id]
                about = (
                    uuid5(photo, f"{header.name}\n{query_id}").urn,
                    "relevance to the query",
                    "relevant" if relevant else "not relevant",
                    f"judged by people: query {query_id} of {facts['datasetName']}",
                    query.text,
                )
                own = (query_id, query.supercategory, query.category, query.split)
                measurements((photo.urn, *about, *own))
            if image.address:
                rights = (facts["license"], facts["rightsHolder"])
                media((photo.urn, "StillImage", image.address, *rights))


@contextmanager
def _rows_of(table: Table, files: Files, folder: str) -> Iterator[WriteRow]:
    """Give a function that writes a row of a table."""
    with files.opened(f"{folder}/{table.file}") as file:

        def write_row(values: Iterable[Any]) -> None:
            cells = (" ".join(v.split()) if isinstance(v, str) else v for v in values)
            file.write(",".join(map(csv_value, cells)) + "\n")

        write_row(("occurrenceID", *table.terms, *table.own))
        yield write_row


def _photo(image: SnapshotImage, header: Header) -> UUID:
    """The photo's identity in all releases. A photo that isn't in the corpus is identified by its
    benchmark's name and its id there."""
    source = (image.dataset or header.name, image.source_id or str(image.image_id))
    name = PurePosixPath(image.file_name).name
    return uuid5(_PHOTOS, json.dumps([*source, name], ensure_ascii=False))


def _observation(image: SnapshotImage, header: Header) -> dict[str, Any]:
    """Term -> value, empty or None where it isn't known; dates are as precise as the corpus has
    them."""
    placed = image.latitude is not None and image.longitude is not None
    url = image.license_url or license_of(image.license, image.license_url).url
    return {
        "catalogNumber": image.image_id,
        "basisOfRecord": "HumanObservation",
        "occurrenceStatus": "present",
        "scientificName": image.scientific_name,
        "kingdom": image.kingdom,
        "phylum": image.phylum,
        "class": image.class_name,
        "order": image.order,
        "family": image.family,
        "genus": image.genus,
        "taxonRank": "species" if image.scientific_name else "",
        "vernacularName": image.vernacular_name,
        "eventDate": image.observed_at,
        "decimalLatitude": image.latitude,
        "decimalLongitude": image.longitude,
        "geodeticDatum": "EPSG:4326" if placed else "",
        "coordinateUncertaintyInMeters": image.location_uncertainty if placed else None,
        "license": url or image.license,
        "rightsHolder": image.rights_holder,
        "otherCatalogNumbers": f"{image.dataset}:{image.source_id}",
        "datasetName": f"{header.name} v{header.version}",
    }


def _meta() -> str:
    root = Element("archive", {"xmlns": "http://rs.tdwg.org/dwc/text/", "metadata": "eml.xml"})
    for table in TABLES:
        core = table is OCCURRENCE
        part = SubElement(
            root,
            "core" if core else "extension",
            encoding="UTF-8",
            fieldsTerminatedBy=",",
            linesTerminatedBy="\\n",
            fieldsEnclosedBy='"',
            ignoreHeaderLines="1",
            rowType=table.row_type,
        )
        SubElement(SubElement(part, "files"), "location").text = table.file
        SubElement(part, "id" if core else "coreid", index="0")
        if core:
            SubElement(part, "field", index="0", term=f"{DWC}occurrenceID")
        for index, term in enumerate(table.terms, start=1):
            term = (DC if term in _DUBLIN_CORE else DWC) + term
            SubElement(part, "field", index=str(index), term=term)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _eml(header: Header, part: str) -> str:
    """eml.xml of the archive of a part ("val" or "all")."""
    identity = [header.name, header.version, header.made_at, part]
    facts = {
        "package": uuid5(_PHOTOS, json.dumps(identity, ensure_ascii=False)).urn,
        "name": header.name,
        "version": str(header.version),
        "author": header.made_by or header.name,
        "date": header.made_at[:10],
        "which": "validation split" if part == "val" else "validation and test split",
        "consensus": header.consensus or "not known",
    }
    template = Path(__file__).with_name("darwin_core_eml.xml").read_text(encoding="utf-8")
    return template.format(**{key: escape(value) for key, value in facts.items()})
