"""Darwin Core as 0.1.0 wrote it, for its releases: the relevant images as observations, an archive
for each split and for all.

    darwin_core/val/   occurrence.csv, meta.xml, eml.xml: the relevant pairs of the validation split
    darwin_core/all/   the same for both splits

One row of occurrence.csv is one relevant pair: what a query asks for, seen on a day at a place. So
`pandas.read_csv` alone is enough to follow a property over space and time. An image that is
relevant to two queries has two rows with the same catalogNumber: `drop_duplicates("catalogNumber")`
counts images. The query has columns of its own (query_id, query, supercategory, category,
split), which Darwin Core doesn't know and its readers skip, and for those in dynamicProperties, as
JSON.

Dates are as precise as the corpus has them; basisOfRecord is HumanObservation, as for
photographs that people sent in. Terms: dwc.tdwg.org/terms; the archive: dwc.tdwg.org/text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from benchmark.releases.formats.base import Access, WrittenFile
from benchmark.releases.formats.writing import (
    PairColumns,
    images_of,
    pair_columns,
    text_file,
    write_csv,
)
from benchmark.releases.snapshot.licenses import license_of
from benchmark.releases.snapshot.snapshot import Header, Snapshot

_DWC: Final = "http://rs.tdwg.org/dwc/terms/"
_DC: Final = "http://purl.org/dc/terms/"
#: Column -> the term that it means.
TERMS: Final = {
    "occurrenceID": _DWC,
    "catalogNumber": _DWC,
    "basisOfRecord": _DWC,
    "occurrenceStatus": _DWC,
    "scientificName": _DWC,
    "kingdom": _DWC,
    "phylum": _DWC,
    "class": _DWC,
    "order": _DWC,
    "family": _DWC,
    "genus": _DWC,
    "taxonRank": _DWC,
    "vernacularName": _DWC,
    "eventDate": _DWC,
    "decimalLatitude": _DWC,
    "decimalLongitude": _DWC,
    "geodeticDatum": _DWC,
    "coordinateUncertaintyInMeters": _DWC,
    "license": _DC,
    "rightsHolder": _DC,
    "associatedMedia": _DWC,
    "otherCatalogNumbers": _DWC,
    "datasetName": _DWC,
    "dynamicProperties": _DWC,
}
QUERY_COLUMNS: Final = ("query_id", "query", "supercategory", "category", "split")
COLUMNS: Final = (*TERMS, *QUERY_COLUMNS)

_IMAGE: Final = (
    "scientific_name",
    "kingdom",
    "phylum",
    "class_name",
    "order",
    "family",
    "genus",
    "vernacular_name",
    "observed_at",
    "latitude",
    "longitude",
    "location_uncertainty",
    "license",
    "license_url",
    "rights_holder",
    "file_name",
    "dataset",
    "source_id",
)


def write(snapshot: Snapshot, directory: Path) -> list[WrittenFile]:
    """Write both archives; without relevant pairs they hold the columns alone."""
    pairs = pair_columns(snapshot)
    relevant = pairs.only(pairs.relevant)
    images = images_of(snapshot, relevant.image_ids, _IMAGE)
    files = []
    for part, chosen, access in (
        ("val", relevant.of_split(snapshot, "val"), Access.OPEN),
        ("all", relevant, Access.LABELS),
    ):
        folder = f"darwin_core/{part}"
        rows = _rows(snapshot, chosen, images)
        files.append(write_csv(directory, f"{folder}/occurrence.csv", access, COLUMNS, rows))
        for name, text in (("meta.xml", _meta()), ("eml.xml", _eml(snapshot.header, part))):
            with text_file(directory, f"{folder}/{name}") as file:
                file.write(text)
            files.append(WrittenFile(f"{folder}/{name}", Access.OPEN))
    return files


def _rows(
    snapshot: Snapshot, pairs: PairColumns, images: dict[int, tuple[Any, ...]]
) -> Iterator[tuple[Any, ...]]:
    header = snapshot.header
    dataset_name = f"{header.name} v{header.version}"
    queries = {}
    for query in snapshot.queries.values():
        columns = (query.query_id, query.text, query.supercategory, query.category, query.split)
        about = dict(zip(QUERY_COLUMNS, columns, strict=True))
        about |= {"iconic_group": query.iconic_group, "scientific_terms": query.scientific_terms}
        queries[query.query_id] = (json.dumps(about, ensure_ascii=False), *columns)
    for query_id, image_id in zip(pairs.query_ids.tolist(), pairs.image_ids.tolist(), strict=True):
        (
            species, kingdom, phylum, class_name, order, family, genus, vernacular, date, latitude,
            longitude, uncertainty, license, url, holder, file_name, dataset, source_id,
        ) = images[image_id]  # fmt: skip
        placed = latitude is not None and longitude is not None
        yield (
            f"{image_id}:{query_id}",
            image_id,
            "HumanObservation",
            "present",
            species,
            kingdom,
            phylum,
            class_name,
            order,
            family,
            genus,
            "species" if species else "",
            vernacular,
            date,
            latitude,
            longitude,
            "EPSG:4326" if placed else "",
            uncertainty if placed else None,
            url or license_of(license, url).url or license,
            holder,
            file_name,
            f"{dataset}:{source_id}",
            dataset_name,
            *queries[query_id],
        )


def _meta() -> str:
    fields = "".join(
        f'    <field index="{index}" term="{namespace}{name}"/>\n'
        for index, (name, namespace) in enumerate(TERMS.items())
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<archive xmlns="http://rs.tdwg.org/dwc/text/" metadata="eml.xml">\n'
        '  <core encoding="UTF-8" fieldsTerminatedBy="," linesTerminatedBy="\\n" '
        'fieldsEnclosedBy=\'"\' ignoreHeaderLines="1" '
        f'rowType="{_DWC}Occurrence">\n'
        "    <files><location>occurrence.csv</location></files>\n"
        f'    <id index="0"/>\n{fields}'
        "  </core>\n</archive>\n"
    )


def _eml(header: Header, part: str) -> str:
    title = f"{header.name} v{header.version}: images relevant to its queries"
    which = "validation split" if part == "val" else "validation and test split"
    about = (
        f"Images that people judged relevant to the queries of {header.name} ({which}), with "
        "species, place and date as the images' source tells them. Each record's licence is its "
        "own; see the term license."
    )
    package = quoteattr(f"{header.name}/v{header.version}/{part}")
    person = f"<organizationName>{escape(header.made_by or header.name)}</organizationName>"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<eml:eml xmlns:eml="eml://ecoinformatics.org/eml-2.1.1" '
        f'packageId={package} system="inquire-annotator" scope="system" xml:lang="en">\n'
        f"  <dataset>\n    <title>{escape(title)}</title>\n"
        f"    <creator>{person}</creator>\n"
        f"    <pubDate>{escape(header.made_at[:10])}</pubDate>\n"
        f"    <language>en</language>\n"
        f"    <abstract><para>{escape(about)}</para></abstract>\n"
        f"    <contact>{person}</contact>\n"
        "  </dataset>\n</eml:eml>\n"
    )
