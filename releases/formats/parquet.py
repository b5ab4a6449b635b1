"""Parquet files in the layout that `datasets.load_dataset` reads, with images or without."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from core.licenses import license_of
from releases.formats.base import Files, ImageFiles
from releases.snapshot.snapshot import ROWS_AT_A_TIME

#: As recommended for data sets of images: 100 in a row group, files of about half a gigabyte.
ROWS_A_GROUP: Final = 100
BYTES_A_GROUP: Final = 32_000_000
BYTES_A_SHARD: Final = 500_000_000

_IMAGE: Final = pa.field("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())]))

#: An image's bytes, if it may be passed on and is here; its path; and the other columns.
Row = tuple[bytes | None, str, tuple[Any, ...]]


def write_batches(
    files: Files, folder: str, split: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> None:
    """Write the file of a split, a row group for each batch; none where there are no rows, since
    `datasets` refuses an empty split."""
    path = files.new_path(_shard_name(folder, split, 0, 1))
    filled = (batch for batch in batches if batch.num_rows)
    if path is None or (first := next(filled, None)) is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, schema, compression="zstd", version="2.6") as file:
        file.write_batch(first)
        for batch in filled:
            file.write_batch(batch)


def batches_of(schema: pa.Schema, rows: Iterable[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    """Rows in the schema's columns, some thousands at a time."""
    waiting = iter(rows)
    while part := list(islice(waiting, ROWS_AT_A_TIME)):
        yield _batch(schema, zip(*part, strict=True))


def image_schema(columns: Iterable[pa.Field]) -> pa.Schema:
    """The schema of a column of images and other columns."""
    others = list(columns)
    features: dict[str, Any] = {"image": {"_type": "Image"}}
    for column in others:
        dtype = "float64" if pa.types.is_float64(column.type) else str(column.type)
        features[column.name] = {"dtype": dtype, "_type": "Value"}
    # By this `datasets` decodes the column as images.
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return pa.schema([_IMAGE, *others], metadata=metadata)


def allowed_bytes(
    image_files: ImageFiles, image_id: int, path: str, sha256: str, license: str, url: str
) -> bytes | None:
    """An image's bytes, as `image_files` gives them, where its license allows copies."""
    return None if license_of(license, url).refusal else image_files(image_id, path, sha256)


def write_images(
    files: Files, folder: str, split: str, schema: pa.Schema, rows: Iterator[Row]
) -> None:
    """Write rows of an `image_schema` to the files of a split, whose number is known only when all
    are written. Holds the images of one row group.
    """
    data = files.directory / folder / "data"
    if present := sorted(data.glob(f"{split}-*-of-*.parquet")):
        files.names.update(f"{folder}/data/{path.name}" for path in present)
        return
    partial: list[Path] = []
    for groups in _shards(_groups(rows)):
        data.mkdir(parents=True, exist_ok=True)
        partial.append(data / f".{split}-{len(partial):05d}.partial")
        with pq.ParquetWriter(
            partial[-1], schema, compression="none", use_dictionary=False,
            write_statistics=False, version="2.6",
        ) as file:  # fmt: skip
            for group in groups:
                file.write_batch(_image_batch(schema, group), row_group_size=len(group))
    for shard, path in enumerate(partial):
        name = _shard_name(folder, split, shard, len(partial))
        files.names.add(name)
        path.rename(files.directory / name)


def _shard_name(folder: str, split: str, shard: int, shards: int) -> str:
    """The path of a shard, in the form by which `datasets` finds splits."""
    return f"{folder}/data/{split}-{shard:05d}-of-{shards:05d}.parquet"


def _groups(rows: Iterator[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row[0] or b"")
        if len(group) == ROWS_A_GROUP or size >= BYTES_A_GROUP:
            yield group
            group, size = [], 0
    if group:
        yield group


def _shards(groups: Iterator[list[Row]]) -> Iterator[Iterator[list[Row]]]:
    """The groups of each file until it is full; a file's groups are to be used up before the next
    file's."""

    def shard(first: list[Row]) -> Iterator[list[Row]]:
        size = _size(first)
        yield first
        while size < BYTES_A_SHARD and (group := next(groups, None)) is not None:
            size += _size(group)
            yield group

    while (first := next(groups, None)) is not None:
        yield shard(first)


def _size(group: list[Row]) -> int:
    return sum(len(data or b"") for data, _, _ in group)


def _image_batch(schema: pa.Schema, group: list[Row]) -> pa.RecordBatch:
    images = [
        None if data is None else {"bytes": data, "path": Path(path).name or None}
        for data, path, _ in group
    ]
    others = zip(*(values for _, _, values in group), strict=True)
    return _batch(schema, (images, *others))


def _batch(schema: pa.Schema, columns: Iterable[Any]) -> pa.RecordBatch:
    arrays = [
        pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)
    ]
    return pa.record_batch(arrays, schema=schema)
