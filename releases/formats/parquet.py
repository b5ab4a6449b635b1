"""Parquet files in the layout that `datasets.load_dataset` reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from releases.formats.base import Access, WrittenFile
from releases.snapshot.snapshot import ROWS_AT_A_TIME

#: Rows are written one way wherever they are written; nothing here depends on the clock.
_SETTINGS: Final[dict[str, Any]] = {"compression": "zstd", "version": "2.6"}


def split_name(folder: str, split: str, shard: int = 0, shards: int = 1) -> str:
    """Where a shard of a split lies, so that `datasets` finds the splits that are there."""
    return f"{folder}/data/{split}-{shard:05d}-of-{shards:05d}.parquet"


def write_batches(
    directory: Path, name: str, access: Access, schema: pa.Schema, parts: Iterable[pa.RecordBatch]
) -> list[WrittenFile]:
    """Write a Parquet file, a row group for each part; none where there are no rows, since
    `datasets` refuses an empty split."""
    filled = (part for part in parts if part.num_rows)
    first = next(filled, None)
    if first is None:
        return []
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, schema, **_SETTINGS) as file:
        file.write_batch(first)
        for part in filled:
            file.write_batch(part)
    return [WrittenFile(name, access)]


def batches_of(schema: pa.Schema, rows: Iterable[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    """Rows in the schema's columns, some thousands at a time."""
    waiting = iter(rows)
    while part := list(islice(waiting, ROWS_AT_A_TIME)):
        columns = zip(*part, strict=True)
        arrays = [
            pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)
        ]
        yield pa.record_batch(arrays, schema=schema)


@dataclass(frozen=True, slots=True)
class Shards:
    """Files of a split whose number is known only when all are written."""

    directory: Path
    folder: str
    split: str

    def partial(self, shard: int) -> Path:
        """Where a shard is written."""
        path = self.directory / self.folder / "data" / f".{self.split}-{shard:05d}.partial"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def named(self, count: int, access: Access) -> list[WrittenFile]:
        """Give the `count` shards their names."""
        names = [split_name(self.folder, self.split, shard, count) for shard in range(count)]
        for shard, name in enumerate(names):
            self.partial(shard).rename(self.directory / name)
        return [WrittenFile(name, access) for name in names]
