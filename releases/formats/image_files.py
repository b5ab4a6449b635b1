"""Images as Parquet, where their licenses allow copies: by themselves, or beside other columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from releases.formats.base import Access, ImageFiles, WrittenFile
from releases.formats.parquet import Shards
from releases.formats.writing import csv_value, rows, spreadsheet_text, text_file
from releases.snapshot.licenses import license_of
from releases.snapshot.snapshot import Snapshot

REFUSED_FILE: Final = "huggingface/refused_images.csv"
#: As recommended for data sets of images: 100 in a row group, files of about half a gigabyte.
ROWS_A_GROUP: Final = 100
BYTES_A_GROUP: Final = 32_000_000
BYTES_A_SHARD: Final = 500_000_000

_TEXTS: Final = ("file_name", "license", "license_url", "rights_holder")
_IMAGE: Final = pa.field("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())]))

#: An image's bytes, if it may be passed on and is here; its path; and the other columns.
Row = tuple[bytes | None, str, tuple[Any, ...]]


def image_schema(columns: Iterable[pa.Field]) -> pa.Schema:
    """A column of images, and others."""
    others = list(columns)
    features: dict[str, Any] = {"image": {"_type": "Image"}}
    for one in others:
        dtype = "float64" if pa.types.is_float64(one.type) else str(one.type)
        features[one.name] = {"dtype": dtype, "_type": "Value"}
    # By this `datasets` decodes the column as images.
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.schema([_IMAGE, *others], metadata=metadata)


SCHEMA: Final = image_schema(
    [pa.field("image_id", pa.int64()), *(pa.field(name, pa.string()) for name in _TEXTS)]
)


def write_shards(
    shards: Shards, schema: pa.Schema, found: Iterator[Row], access: Access
) -> tuple[list[WrittenFile], int]:
    """Write rows of an `image_schema` to a split's files; these, and how many rows have an image.

    Holds the images of one row group.
    """
    count = 0
    kept = 0
    for parts in _shards(_groups(found)):
        with pq.ParquetWriter(
            shards.partial(count), schema, compression="none", use_dictionary=False,
            write_statistics=False, version="2.6",
        ) as file:  # fmt: skip
            for group in parts:
                file.write_batch(_batch(schema, group), row_group_size=len(group))
                kept += sum(data is not None for data, _, _ in group)
        count += 1
    return shards.named(count, access), kept


def allowed_bytes(
    image_files: ImageFiles, image_id: int, path: str, sha256: str, license: str, url: str
) -> bytes | None:
    """An image's bytes, as `image_files` gives them, where its license allows copies."""
    return None if license_of(license, url).refusal else image_files(image_id, path, sha256)


def write_image_files(
    snapshot: Snapshot, directory: Path, image_files: ImageFiles, folder: str
) -> tuple[list[WrittenFile], int, int]:
    """Write the images that may be passed on, and the list of those that are left out.

    Gives the files, how many images they hold, and how many are left out. The bytes are as
    `image_files` gives them: without metadata, and the pixels as they were, which also a license
    without derivatives allows (retrieval/images/metadata.py).
    """
    shards = Shards(directory, folder, "images")
    with text_file(directory, REFUSED_FILE) as refusals:
        refusals.write("image_id,rights_holder,license,license_url,reason\n")
        allowed = _image_rows(snapshot, image_files, refusals)
        files, kept = write_shards(shards, SCHEMA, allowed, Access.OPEN)
    return [*files, WrittenFile(REFUSED_FILE, Access.OPEN)], kept, snapshot.image_count - kept


def _image_rows(snapshot: Snapshot, image_files: ImageFiles, refusals: TextIO) -> Iterator[Row]:
    """The images that may be passed on; the others are listed."""
    for image_id, sha256, *texts in rows(snapshot, "images", ("image_id", "sha256", *_TEXTS)):
        name, license, url, holder = texts
        data = allowed_bytes(image_files, image_id, name, sha256, license, url)
        if data is not None:
            yield data, name, (image_id, *texts)
            continue
        cells = map(spreadsheet_text, (holder, license, url))
        reason = license_of(license, url).refusal or "the image's file isn't here or cannot be read"
        refusals.write(",".join(map(csv_value, (image_id, *cells, reason))) + "\n")


def _groups(found: Iterator[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    size = 0
    for row in found:
        group.append(row)
        size += len(row[0] or b"")
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
    return sum(len(data or b"") for data, _, _ in group)


def _batch(schema: pa.Schema, group: list[Row]) -> pa.RecordBatch:
    images = [
        None if data is None else {"bytes": data, "path": Path(path).name or None}
        for data, path, _ in group
    ]
    others = zip(*(values for _, _, values in group), strict=True)
    arrays = [
        pa.array(column, type=field.type)
        for column, field in zip((images, *others), schema, strict=True)
    ]
    return pa.record_batch(arrays, schema=schema)
