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

Dates are as precise as the corpus has them; basisOfRecord is HumanObservation, as for
photographs that people sent in. Terms: dwc.tdwg.org/terms; the archive: dwc.tdwg.org/text;
Multimedia: rs.gbif.org/extension/gbif/1.0/multimedia.xml; EML: github.com/gbif/eml-profile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final
from uuid import NAMESPACE_URL, UUID, uuid5
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from benchmark.releases.formats import darwin_core_1
from benchmark.releases.formats.base import Access, Format, ImageFiles, WrittenFile
from benchmark.releases.formats.writing import PairColumns, csv_value, pair_columns, text_file
from benchmark.releases.snapshot.licenses import license_of
from benchmark.releases.snapshot.snapshot import Header, Snapshot, SnapshotImage

_DWC: Final = "http://rs.tdwg.org/dwc/terms/"
_DC: Final = "http://purl.org/dc/terms/"
_EML: Final = "https://eml.ecoinformatics.org/eml-2.2.0"
_PHOTOS: Final = uuid5(NAMESPACE_URL, "urn:inquire-annotator:photo")

WriteRow = Callable[[Sequence[Any]], None]


@dataclass(frozen=True, slots=True)
class Table:
    """A file of the archive, whose first column is the occurrenceID."""

    file: str
    row_type: str
    dwc: tuple[str, ...] = ()
    """Columns that are terms of Darwin Core."""
    dc: tuple[str, ...] = ()
    """Columns after those that are terms of Dublin Core."""
    own: tuple[str, ...] = ()
    """Columns after those that have no term."""

    @property
    def terms(self) -> list[str]:
        """The terms of the columns from the second on, as far as they have one."""
        return [*(_DWC + name for name in self.dwc), *(_DC + name for name in self.dc)]

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return ["occurrenceID", *self.dwc, *self.dc, *self.own]


OCCURRENCE: Final = Table(
    "occurrence.csv",
    f"{_DWC}Occurrence",
    dwc=("catalogNumber", "otherCatalogNumbers", "basisOfRecord", "occurrenceStatus",
         "scientificName", "kingdom", "phylum", "class", "order", "family", "genus", "taxonRank",
         "vernacularName", "eventDate", "decimalLatitude", "decimalLongitude", "geodeticDatum",
         "coordinateUncertaintyInMeters", "associatedMedia", "datasetName"),
    dc=("license", "rightsHolder"),
    own=("image_path",),
)  # fmt: skip
MEASUREMENT: Final = Table(
    "measurement.csv",
    f"{_DWC}MeasurementOrFact",
    dwc=("measurementID", "measurementType", "measurementValue", "measurementMethod",
         "measurementRemarks"),
    own=("query_id", "supercategory", "category", "split"),
)  # fmt: skip
MULTIMEDIA: Final = Table(
    "multimedia.csv",
    "http://rs.gbif.org/terms/1.0/Multimedia",
    dc=("type", "identifier", "license", "rightsHolder"),
)
TABLES: Final = (OCCURRENCE, MEASUREMENT, MULTIMEDIA)


def write(snapshot: Snapshot, directory: Path, image_files: ImageFiles) -> list[WrittenFile]:
    """Write both archives; without judged photos of organisms they hold the columns alone."""
    if snapshot.header.formats == 1:
        return darwin_core_1.write(snapshot, directory)
    pairs = pair_columns(snapshot)
    files = []
    for part, chosen, access in (
        ("val", pairs.of_split(snapshot, "val"), Access.OPEN),
        ("all", pairs, Access.LABELS),
    ):
        folder = f"darwin_core/{part}"
        _write_tables(snapshot, directory / folder, chosen)
        for name, root in (("meta.xml", _meta()), ("eml.xml", _eml(snapshot.header, part))):
            indent(root)
            with text_file(directory, f"{folder}/{name}") as file:
                file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
                file.write(tostring(root, encoding="unicode") + "\n")
        names = (*(table.file for table in TABLES), "meta.xml", "eml.xml")
        files += [WrittenFile(f"{folder}/{name}", access) for name in names]
    return files


def _write_tables(snapshot: Snapshot, folder: Path, pairs: PairColumns) -> None:
    """Write the tables in one pass over the images; holds the pairs' columns alone."""
    title = _title(snapshot.header)
    order = np.lexsort((pairs.query_ids, pairs.image_ids))
    image_ids = pairs.image_ids[order]
    with ExitStack() as stack:
        occurrences, measurements, media = (
            stack.enter_context(_rows_of(table, folder)) for table in TABLES
        )
        for image in snapshot.images():
            ends = np.searchsorted(image_ids, [image.image_id, image.image_id + 1])
            judged = order[slice(*ends)]
            if not len(judged) or not image.scientific_name or image.no_organism:
                continue
            photo = _photo(image, snapshot.header)
            occurrences((photo.urn, *_occurrence(image), title, *_rights(image), image.file_name))
            for query_id, relevant in zip(
                pairs.query_ids[judged].tolist(), pairs.relevant[judged].tolist(), strict=True
            ):
                query = snapshot.queries[query_id]
                measurements(
                    (
                        photo.urn,
                        uuid5(photo, f"{snapshot.header.name}\n{query_id}").urn,
                        "relevance to the query",
                        "relevant" if relevant else "not relevant",
                        f"judged by people: query {query_id} of {title}",
                        query.text,
                        query_id,
                        query.supercategory,
                        query.category,
                        query.split,
                    )
                )
            if image.address:
                media((photo.urn, "StillImage", image.address, *_rights(image)))


@contextmanager
def _rows_of(table: Table, folder: Path) -> Iterator[WriteRow]:
    """Give a function that writes a row of a table."""
    with text_file(folder, table.file) as file:

        def write_row(values: Sequence[Any]) -> None:
            cells = (" ".join(one.split()) if isinstance(one, str) else one for one in values)
            file.write(",".join(map(csv_value, cells)) + "\n")

        write_row(table.columns)
        yield write_row


def _photo(image: SnapshotImage, header: Header) -> UUID:
    """What the photo is called everywhere. One that isn't in the corpus is known by its benchmark's
    name and its id there."""
    source = (image.dataset or header.name, image.source_id or str(image.image_id))
    name = PurePosixPath(image.file_name).name
    return uuid5(_PHOTOS, json.dumps([*source, name], ensure_ascii=False))


def _occurrence(image: SnapshotImage) -> tuple[Any, ...]:
    placed = image.latitude is not None and image.longitude is not None
    return (
        image.image_id,
        f"{image.dataset}:{image.source_id}" if image.dataset else "",
        "HumanObservation",
        "present",
        image.scientific_name,
        image.kingdom,
        image.phylum,
        image.class_name,
        image.order,
        image.family,
        image.genus,
        "species",
        image.vernacular_name,
        image.observed_at,
        image.latitude,
        image.longitude,
        "EPSG:4326" if placed else "",
        image.location_uncertainty if placed else None,
        image.address,
    )


def _rights(image: SnapshotImage) -> tuple[str, str]:
    """License and rights holder."""
    url = image.license_url or license_of(image.license, image.license_url).url
    return url or image.license, image.rights_holder


def _title(header: Header) -> str:
    return f"{header.name} v{header.version}"


def _meta() -> Element:
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
            SubElement(part, "field", index="0", term=f"{_DWC}occurrenceID")
        for index, term in enumerate(table.terms, start=1):
            SubElement(part, "field", index=str(index), term=term)
    return root


def _eml(header: Header, part: str) -> Element:
    """About an archive; the order of the elements is that of the profile."""
    which = "validation split" if part == "val" else "validation and test split"
    about = (
        f"Photos of organisms that people judged for the queries of {header.name} ({which}), with "
        "species, place and date as the photos' source tells them, and whether each is relevant to "
        "the queries that it was judged for."
    )
    facts = [header.name, header.version, header.made_at, part]
    root = Element(
        "eml:eml",
        {
            "xmlns:eml": _EML,
            "xmlns:xsi": "http://www.w3.org/2001/XMLSchema-instance",
            "xsi:schemaLocation": f"{_EML} https://rs.gbif.org/schema/eml-gbif-profile/1.3/eml.xsd",
            "packageId": uuid5(_PHOTOS, json.dumps(facts, ensure_ascii=False)).urn,
            "system": "inquire-annotator",
            "scope": "system",
            "xml:lang": "en",
        },
    )
    dataset = SubElement(root, "dataset")

    def party(role: str) -> None:
        name = header.made_by or header.name
        SubElement(SubElement(dataset, role), "organizationName").text = name

    def paragraph(name: str, text: str) -> None:
        SubElement(SubElement(dataset, name), "para").text = text

    title = f"{_title(header)}: photos judged for its queries ({which})"
    SubElement(dataset, "title", {"xml:lang": "en"}).text = title
    party("creator")
    party("metadataProvider")
    SubElement(dataset, "pubDate").text = header.made_at[:10]
    SubElement(dataset, "language").text = "en"
    paragraph("abstract", about)
    if header.consensus:
        paragraph("additionalInfo", f"How relevance was decided: {header.consensus}")
    paragraph("intellectualRights", "Each photo has a license of its own: see the term license.")
    party("contact")
    return root


FORMAT = Format(
    key="darwin-core",
    title="Darwin Core",
    about="The judged photos as observations: species, date, place, license, and their relevance.",
    write=write,
)
