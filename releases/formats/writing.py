"""What the writers of formats share: files in folders, columns of a snapshot's tables, CSV, and
Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.csv_rows import csv_field
from releases.formats.base import Access, WrittenFile
from releases.snapshot.snapshot import ROWS_AT_A_TIME, Snapshot

#: Who may have a file with the labels of a split.
ACCESS: Final = {"val": Access.OPEN, "test": Access.LABELS}
SPLIT_NAMES: Final = {"val": "validation", "test": "test"}

_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|#~&])")
_FORMULA: Final = re.compile(r"[=+\-@\t\r]")

Ids = npt.NDArray[np.int64]


def image_lists(snapshot: Snapshot) -> list[tuple[str, Snapshot, Access]]:
    """The lists of images to write: what each one's name ends with, the snapshot whose images it
    has, and who may have it.

    Which images were judged for a query tells how far down its list the relevant ones lie. So where
    the labels of the test split are hidden, the open list has what the validation split and the
    fixed lists name, and another one has all.
    """
    lists = [("", snapshot.open, Access.OPEN)]
    if snapshot.open is not snapshot:
        lists.append(("_all", snapshot, Access.LABELS))
    return lists


@dataclass(frozen=True, slots=True)
class PairColumns:
    """The judged pairs of a snapshot as columns, n pairs by query id and image id."""

    query_ids: Ids
    """(n,)"""
    image_ids: Ids
    """(n,)"""
    relevant: npt.NDArray[np.bool_]
    """(n,)"""
    gains: Ids | None = None
    """(n,) as `Snapshot.gains` has them; None where no query has grades."""

    def only(self, keep: npt.NDArray[np.bool_]) -> PairColumns:
        """The pairs that a mask of n keeps, in their order."""
        return self._taken(keep)

    def of_split(self, snapshot: Snapshot, split: str) -> PairColumns:
        """The pairs of the queries of a split."""
        ids = np.array(list(snapshot.queries_of(split)), dtype=np.int64)
        return self.only(np.isin(self.query_ids, ids))

    def in_order(self, rows: Ids) -> PairColumns:
        """The pairs by their rows (n,); those without one, -1, follow as they are."""
        order = np.lexsort((rows, rows < 0))
        return self._taken(order)

    def rows(self, *, graded: bool = False) -> Iterator[tuple[int, int, int]]:
        """(query id, image id, 1 or 0, or with `graded` the gain) of each pair."""
        values = self.relevant.astype(np.int64)
        if graded and self.gains is not None:
            values = self.gains
        return zip(self.query_ids.tolist(), self.image_ids.tolist(), values.tolist(), strict=True)

    def _taken(self, which: npt.NDArray[Any]) -> PairColumns:
        gains = None if self.gains is None else self.gains[which]
        return PairColumns(
            self.query_ids[which], self.image_ids[which], self.relevant[which], gains
        )


def pair_columns(snapshot: Snapshot) -> PairColumns:
    """The judged pairs of a snapshot, 17 bytes each, 25 with gains."""
    columns = ["query_id", "image_id", "relevant"]
    table = pq.read_table(snapshot.path("pairs"), columns=columns)
    query_ids, image_ids, relevant = (table[name].to_numpy() for name in columns)
    return PairColumns(query_ids, image_ids, relevant, snapshot.gains())


def batches(snapshot: Snapshot, table: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """A table's columns, in the order named, piece by piece."""
    with pq.ParquetFile(snapshot.path(table)) as file:
        for batch in file.iter_batches(batch_size=ROWS_AT_A_TIME, columns=list(columns)):
            yield batch.select(list(columns))


def rows(snapshot: Snapshot, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """A table's rows of the columns named, without holding them."""
    for batch in batches(snapshot, table, columns):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def images_of(
    snapshot: Snapshot, image_ids: Ids, columns: Sequence[str]
) -> dict[int, tuple[Any, ...]]:
    """The columns of these images, by id; holds no more than those."""
    chosen = pa.array(np.unique(image_ids), type=pa.int64())
    found: dict[int, tuple[Any, ...]] = {}
    for batch in batches(snapshot, "images", ["image_id", *columns]):
        rows_of_images = batch.filter(pc.is_in(batch.column(0), value_set=chosen))
        ids, *values = (column.to_pylist() for column in rows_of_images.columns)
        found.update(zip(ids, zip(*values, strict=True), strict=True))
    return found


@contextmanager
def text_file(directory: Path, name: str) -> Iterator[TextIO]:
    """A new UTF-8 file with LF line ends, and its folders."""
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        yield file


def write_csv(
    directory: Path,
    name: str,
    access: Access,
    header: Sequence[str],
    lines: Iterable[Sequence[Any]],
) -> WrittenFile:
    """Write a CSV file from rows as they come: None is blank, True and False are 1 and 0.

    Texts are written verbatim. Where people will open the file as a spreadsheet, pass them through
    `spreadsheet_text` first.
    """
    with text_file(directory, name) as file:
        file.write(",".join(header) + "\n")
        for line in lines:
            file.write(",".join(map(csv_value, line)) + "\n")
    return WrittenFile(name, access)


def csv_value(value: Any) -> str:
    """One value as a field of a CSV file."""
    if isinstance(value, str):
        return csv_field(value)
    if isinstance(value, bool):
        return "1" if value else "0"
    return "" if value is None else repr(value)


def spreadsheet_text(text: str) -> str:
    """The text, with an apostrophe before one that a spreadsheet would take for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def plain(text: str) -> str:
    """The text on one line, with what Markdown and HTML take for markup escaped."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def share(part: int, whole: int) -> str:
    """ "1,234 of 5,000 (24.7 %)"; without a share of nothing."""
    if not whole:
        return "0 of 0"
    return f"{part:,} of {whole:,} ({100 * part / whole:.1f} %)"


def counted(count: int, one: str, many: str) -> str:
    """ "1 query" or "1,234 queries"."""
    return f"{count:,} {one if count == 1 else many}"


def percent(part: int, whole: int) -> str:
    """ "24.7 %"; "–" of nothing."""
    return f"{100 * part / whole:.1f} %" if whole else "–"
