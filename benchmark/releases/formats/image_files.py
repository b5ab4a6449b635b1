"""The images themselves as Parquet, where their licenses allow copies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from benchmark.releases.formats.base import Access, ImageFiles, WrittenFile
from benchmark.releases.formats.parquet import Shards
from benchmark.releases.formats.writing import csv_value, rows, spreadsheet_text, text_file
from benchmark.releases.snapshot.licenses import license_of
from benchmark.releases.snapshot.snapshot import Snapshot

REFUSED_FILE: Final = "huggingface/refused_images.csv"
#: As recommended for data sets of images: 100 in a row group, files of about half a gigabyte.
ROWS_A_GROUP: Final = 100
BYTES_A_GROUP: Final = 32_000_000
BYTES_A_SHARD: Final = 500_000_000

_TEXTS: Final = ("file_name", "license", "license_url", "rights_holder")
_FEATURES: Final = {
    "image": {"_type": "Image"},
    "image_id": {"dtype": "int64", "_type": "Value"},
    **{name: {"dtype": "string", "_type": "Value"} for name in _TEXTS},
}
SCHEMA: Final = pa.schema(
    [
        pa.field("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        pa.field("image_id", pa.int64()),
        *(pa.field(name, pa.string()) for name in _TEXTS),
    ],
    # By this `datasets` decodes the column as images.
    metadata={"huggingface": json.dumps({"info": {"features": _FEATURES}})},
)


Row = tuple[bytes, int, tuple[str, ...]]


def write_image_files(
    snapshot: Snapshot, directory: Path, image_files: ImageFiles, folder: str
) -> tuple[list[WrittenFile], int, int]:
    """Write the images that may be passed on, and the list of those that are left out.

    Gives the files, how many images they hold, and how many are left out. The bytes are as
    `image_files` gives them: without metadata, and the pixels as they were, which also a license
    without derivatives allows (retrieval/images/metadata.py). Holds the images of one row group.
    """
    shards = Shards(directory, folder, "images")
    count = 0
    kept = 0
    with text_file(directory, REFUSED_FILE) as refusals:
        refusals.write("image_id,rights_holder,license,license_url,reason\n")
        for parts in _shards(_groups(_image_rows(snapshot, image_files, refusals))):
            with pq.ParquetWriter(
                shards.partial(count), SCHEMA, compression="none", use_dictionary=False,
                write_statistics=False, version="2.6",
            ) as file:  # fmt: skip
                for group in parts:
                    file.write_batch(_batch(group), row_group_size=len(group))
                    kept += len(group)
            count += 1
    files = [*shards.named(count, Access.OPEN), WrittenFile(REFUSED_FILE, Access.OPEN)]
    return files, kept, snapshot.image_count - kept


def _image_rows(snapshot: Snapshot, image_files: ImageFiles, refusals: TextIO) -> Iterator[Row]:
    """(bytes, image id, texts) of each image that may be passed on; the others are listed."""
    for image_id, sha256, *texts in rows(snapshot, "images", ("image_id", "sha256", *_TEXTS)):
        name, license, url, holder = texts
        reason = license_of(license, url).refusal
        data = None if reason else image_files(image_id, name, sha256)
        if data is not None:
            yield data, image_id, tuple(texts)
            continue
        cells = map(spreadsheet_text, (holder, license, url))
        reason = reason or "the image's file isn't here or cannot be read"
        refusals.write(",".join(map(csv_value, (image_id, *cells, reason))) + "\n")


def _groups(found: Iterator[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    size = 0
    for row in found:
        group.append(row)
        size += len(row[0])
        if len(group) == ROWS_A_GROUP or size >= BYTES_A_GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def _shards(groups: Iterator[list[Row]]) -> Iterator[Iterator[list[Row]]]:
    """Groups until a file is full, file after file; each is to be used up before the next."""

    def one(first: list[Row]) -> Iterator[list[Row]]:
        size = _size(first)
        yield first
        while size < BYTES_A_SHARD and (group := next(groups, None)) is not None:
            size += _size(group)
            yield group

    while (first := next(groups, None)) is not None:
        yield one(first)


def _size(group: list[Row]) -> int:
    return sum(len(data) for data, _, _ in group)


def _batch(group: list[Row]) -> pa.RecordBatch:
    images: list[dict[str, Any]] = [
        {"bytes": data, "path": Path(texts[0]).name or None} for data, _, texts in group
    ]
    columns = [
        pa.array(images, type=SCHEMA.field("image").type),
        pa.array([image_id for _, image_id, _ in group], type=pa.int64()),
        *(
            pa.array([texts[place] for _, _, texts in group], type=pa.string())
            for place in range(len(_TEXTS))
        ),
    ]
    return pa.record_batch(columns, schema=SCHEMA)
