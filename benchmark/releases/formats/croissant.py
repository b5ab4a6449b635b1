"""croissant.json: the release in the vocabulary in which search engines and loaders of data sets
read what a data set is (schema.org with MLCommons' Croissant 1.1).

It names every file with its SHA-256, but the manifests, which name it, and itself; and it says how
to read four sets of records from the snapshot's tables: splits, queries, images and annotations.
The specification: docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

import pyarrow.parquet as pq

from benchmark.releases.snapshot.licenses import license_of
from benchmark.releases.snapshot.snapshot import Header, Snapshot

CROISSANT_FILE: Final = "croissant.json"
#: The same for those who don't see the test split's labels: open files alone.
OPEN_CROISSANT_FILE: Final = "croissant_open.json"

_CONTEXT: Final = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_ENCODINGS: Final = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".md": "text/markdown",
    ".parquet": "application/x-parquet",
    ".tsv": "text/tab-separated-values",
    ".xml": "application/xml",
}
_SPLIT_URLS: Final = {"val": "cr:Validation", "test": "cr:Test"}
#: Record set -> its table in the snapshot, what a record is, and its columns with their types.
_RECORDS: Final[dict[str, tuple[str, str, dict[str, str]]]] = {
    "queries": (
        "queries",
        "The queries: a text that says what an image should show.",
        {"query_id": "sc:Integer", "text": "sc:Text", "supercategory": "sc:Text",
         "category": "sc:Text", "guidelines": "sc:Text", "split": "sc:Text"},
    ),
    "images": (
        "images",
        "The images that a judged pair or a fixed list names.",
        {"image_id": "sc:Integer", "file_name": "sc:Text", "scientific_name": "sc:Text",
         "license": "sc:Text", "license_url": "sc:Text", "rights_holder": "sc:Text",
         "observed_at": "sc:Text", "latitude": "sc:Float", "longitude": "sc:Float"},
    ),
    "annotations": (
        "pairs",
        "The judged pairs of a query and an image, and whether the image is relevant.",
        {"query_id": "sc:Integer", "image_id": "sc:Integer", "relevant": "sc:Boolean"},
    ),
}  # fmt: skip
_KEYS: Final = {
    "queries": ["queries/query_id"],
    "images": ["images/image_id"],
    "annotations": ["annotations/query_id", "annotations/image_id"],
}


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
        "citeAs": _citation(header, author),
        "inLanguage": "en",
        "keywords": ["text-to-image retrieval", "image retrieval", "biodiversity"],
        "distribution": [_file_object(entry) for entry in files],
        "recordSet": [_splits(), *(_record_set(name, snapshot) for name in _RECORDS)],
    }
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    path.write_text(text, encoding="utf-8")


def _licenses(snapshot: Snapshot) -> list[Any]:
    """The addresses of the images' licenses; where one is only named, or none is given, where to
    read it."""
    images = pq.read_table(snapshot.path("images"), columns=["license", "license_url"])
    groups = images.group_by(["license", "license_url"]).aggregate([]).to_pylist()
    found = {one["license_url"] or license_of(one["license"], "").url for one in groups}
    addresses: list[Any] = sorted(found - {""})
    if "" in found or not found:
        terms = "Each image has a license of its own: see attribution.csv."
        addresses.append({"@type": "sc:CreativeWork", "name": terms})
    return addresses


def _citation(header: Header, author: str) -> str:
    fields = {
        "title": f"{header.name}, version {header.version}",
        "author": author,
        "year": header.made_at[:4],
        "note": f"Made with {header.software}",
    }
    body = ", ".join(f"{key} = {{{value}}}" for key, value in fields.items())
    return f"@misc{{release, {body}}}"


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
    return {
        "@type": "cr:RecordSet",
        "@id": "splits",
        "name": "splits",
        "description": "The splits of the queries.",
        "dataType": "cr:Split",
        "key": {"@id": "splits/name"},
        "field": [
            {"@type": "cr:Field", "@id": "splits/name", "name": "name", "dataType": "sc:Text"},
            {"@type": "cr:Field", "@id": "splits/url", "name": "url", "dataType": "sc:URL"},
        ],
        "data": [{"splits/name": name, "splits/url": url} for name, url in _SPLIT_URLS.items()],
    }


def _record_set(name: str, snapshot: Snapshot) -> dict[str, Any]:
    table, about, columns = _RECORDS[name]
    file = f"{snapshot.directory.name}/{snapshot.path(table).name}"
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{name}/{column}",
            "name": column,
            "dataType": kind,
            "source": {"fileObject": {"@id": file}, "extract": {"column": column}},
        }
        for column, kind in columns.items()
    ]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": about,
        "key": [{"@id": key} for key in _KEYS[name]],
        "field": fields,
    }
