"""Darwin Core as 0.1.0 wrote it, for its releases, which come out again byte for byte.

A folder for the validation split and one for all, each with occurrence.csv (a row for each relevant
pair, with columns of the query), meta.xml and eml.xml; the last two were open throughout.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from benchmark.releases.formats.base import Access, WrittenFile
from benchmark.releases.formats.observations import eml, observation
from benchmark.releases.formats.writing import PairColumns, pair_columns, text_file, write_csv
from benchmark.releases.snapshot.snapshot import Snapshot, SnapshotImage

_TERMS: Final = (
    "occurrenceID", "catalogNumber", "basisOfRecord", "occurrenceStatus", "scientificName",
    "kingdom", "phylum", "class", "order", "family", "genus", "taxonRank", "vernacularName",
    "eventDate", "decimalLatitude", "decimalLongitude", "geodeticDatum",
    "coordinateUncertaintyInMeters", "license", "rightsHolder", "associatedMedia",
    "otherCatalogNumbers", "datasetName", "dynamicProperties",
)  # fmt: skip
_QUERY: Final = ("query_id", "query", "supercategory", "category", "split")


def write(snapshot: Snapshot, directory: Path) -> list[WrittenFile]:
    """Write both archives; without relevant pairs they hold the columns alone."""
    header = snapshot.header
    pairs = pair_columns(snapshot)
    relevant = pairs.only(pairs.relevant)
    named = set(relevant.image_ids.tolist())
    images = {one.image_id: one for one in snapshot.images() if one.image_id in named}
    files = []
    for part, chosen, access in (
        ("val", relevant.of_split(snapshot, "val"), Access.OPEN),
        ("all", relevant, Access.LABELS),
    ):
        folder = f"darwin_core/{part}"
        rows = _rows(snapshot, chosen, images)
        columns = (*_TERMS, *_QUERY)
        files.append(write_csv(directory, f"{folder}/occurrence.csv", access, columns, rows))
        package = quoteattr(f"{header.name}/v{header.version}/{part}")
        about = eml(header, part, "darwin_core_1_eml.xml", package)
        meta = Path(__file__).with_name("darwin_core_1_meta.xml").read_text(encoding="utf-8")
        for name, text in (("meta.xml", meta), ("eml.xml", about)):
            with text_file(directory, f"{folder}/{name}") as file:
                file.write(text)
            files.append(WrittenFile(f"{folder}/{name}", Access.OPEN))
    return files


def _rows(
    snapshot: Snapshot, pairs: PairColumns, images: dict[int, SnapshotImage]
) -> Iterator[tuple[Any, ...]]:
    queries = {}
    for query in snapshot.queries.values():
        columns = (query.query_id, query.text, query.supercategory, query.category, query.split)
        about = dict(zip(_QUERY, columns, strict=True))
        more = {"iconic_group": query.iconic_group, "scientific_terms": query.scientific_terms}
        properties = json.dumps(about | more, ensure_ascii=False)
        queries[query.query_id] = about | {"dynamicProperties": properties}
    for query_id, image_id in zip(pairs.query_ids.tolist(), pairs.image_ids.tolist(), strict=True):
        row = observation(images[image_id], snapshot.header) | queries[query_id]
        row |= {
            "occurrenceID": f"{image_id}:{query_id}",
            "associatedMedia": images[image_id].file_name,
        }
        yield tuple(row[name] for name in (*_TERMS, *_QUERY))
