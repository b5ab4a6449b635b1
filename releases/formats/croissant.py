"""croissant.json: the release in the vocabulary in which search engines and loaders of data sets
read what a data set is (schema.org with MLCommons' Croissant 1.1).

It names every file with its SHA-256, but the manifests, which name it, and itself; and it says how
to read sets of records from the snapshot's tables: splits, queries, images, annotations and, where
images have any, custom fields.
The specification: docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

import pyarrow.parquet as pq

from core.licenses import license_of
from releases.formats.writing import citation
from releases.snapshot.snapshot import Snapshot

CROISSANT_FILE: Final = "croissant.json"
#: The description for those who don't see the test split's labels: open files alone.
OPEN_CROISSANT_FILE: Final = "croissant_open.json"

#: The names that every Croissant file uses.
_CONTEXT: Final = json.loads(Path(__file__).with_name("croissant_context.json").read_text())
_ENCODINGS: Final = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".md": "text/markdown",
    ".parquet": "application/x-parquet",
    ".py": "text/x-python",
    ".tsv": "text/tab-separated-values",
    ".xml": "application/xml",
}
#: Record set -> its table in the snapshot, its description, how many of its first columns are its
#: key, and its columns with their types.
_RECORDS: Final[dict[str, tuple[str, str, int, dict[str, str]]]] = {
    "queries": (
        "queries",
        "The queries: a text that says what an image should show.",
        1,
        {"query_id": "Integer", "text": "Text", "supercategory": "Text", "category": "Text",
         "guidelines": "Text", "split": "Text"},
    ),
    "images": (
        "images",
        "The images that a judged pair or a fixed list names.",
        1,
        {"image_id": "Integer", "file_name": "Text", "scientific_name": "Text", "license": "Text",
         "license_url": "Text", "rights_holder": "Text", "observed_at": "Text",
         "latitude": "Float", "longitude": "Float"},
    ),
    "custom_fields": (
        "custom_fields",
        "Further columns of the tables that the images came with.",
        2,
        {"image_id": "Integer", "field": "Text", "kind": "Text", "value": "Text"},
    ),
    "annotations": (
        "pairs",
        "The judged pairs of a query and an image, and whether the image is relevant.",
        2,
        {"query_id": "Integer", "image_id": "Integer", "relevant": "Boolean"},
    ),
}  # fmt: skip


def write_croissant(path: Path, snapshot: Snapshot, files: Iterable[Mapping[str, Any]]) -> None:
    """Write the description of a release beside its files; `snapshot` is the one whose tables it
    reads records from, and `files` are entries of a release's `file_list`, with the snapshot's."""
    header = snapshot.header
    author = header.made_by or header.name
    title = f"{header.name} v{header.version}"
    content = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": title,
        "description": (
            f"A benchmark of text-to-image retrieval: {len(snapshot.queries)} queries, and images "
            "that people judged relevant or not relevant to them. DATASHEET.md tells how it was "
            "made."
        ),
        "version": f"{header.version}.0.0",
        "datePublished": header.made_at[:10],
        "creator": {"@type": "Person" if header.made_by else "Organization", "name": author},
        "license": _licenses(snapshot),
        "citeAs": citation(header),
        "inLanguage": "en",
        "keywords": ["text-to-image retrieval", "image retrieval", "biodiversity"],
        "distribution": [_file_object(entry) for entry in files],
        "recordSet": [_splits(), *_tables(snapshot)],
    }
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _licenses(snapshot: Snapshot) -> list[Any]:
    """The addresses of the images' licenses; for images whose license has no known address, a hint
    where to read it."""
    columns = ["license", "license_url"]
    images = pq.read_table(snapshot.path("images"), columns=columns)
    groups = images.group_by(columns).aggregate([]).to_pylist()
    urls = {group["license_url"] or license_of(group["license"], "").url for group in groups}
    addresses: list[Any] = sorted(urls - {""})
    if "" in urls or not urls:
        terms = "Each image has a license of its own: see attribution.csv."
        addresses.append({"@type": "sc:CreativeWork", "name": terms})
    return addresses


def _file_object(entry: Mapping[str, Any]) -> dict[str, Any]:
    name = entry["name"]
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{entry['size']} B",
        "encodingFormat": _ENCODINGS.get(PurePosixPath(name).suffix, "text/plain"),
        "sha256": entry["sha256"],
    }


def _splits() -> dict[str, Any]:
    fields = [_field("splits", "name", "Text"), _field("splits", "url", "URL")]
    names = (("val", "cr:Validation"), ("test", "cr:Test"))
    rows = [{"splits/name": name, "splits/url": url} for name, url in names]
    kind = {"dataType": "cr:Split", "data": rows}
    return _record_set("splits", "The splits of the queries.", 1, fields) | kind


def _tables(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    for name, (table, *_) in _RECORDS.items():
        if snapshot.has_table(table):
            yield _table(name, snapshot)


def _table(name: str, snapshot: Snapshot) -> dict[str, Any]:
    """The record set of a table."""
    table, about, keys, columns = _RECORDS[name]
    file = {"@id": f"{snapshot.directory.name}/{snapshot.path(table).name}"}
    fields = [
        _field(name, column, kind) | {"source": {"fileObject": file, "extract": {"column": column}}}
        for column, kind in columns.items()
    ]
    if name == "queries":
        fields[-1]["references"] = {"field": {"@id": "splits/name"}}
    return _record_set(name, about, keys, fields)


def _record_set(name: str, about: str, keys: int, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": about,
        "key": [{"@id": field["@id"]} for field in fields[:keys]],
        "field": fields,
    }


def _field(record_set: str, name: str, kind: str) -> dict[str, Any]:
    identity = {"@type": "cr:Field", "@id": f"{record_set}/{name}"}
    return identity | {"name": name, "dataType": f"sc:{kind}"}
