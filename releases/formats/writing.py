"""What the writers of formats share: columns of a snapshot's tables, and values of CSV files and
Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from core.csv_rows import csv_field
from releases.snapshot.snapshot import Snapshot

SPLIT_NAMES: Final = {"val": "validation", "test": "test"}

_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|#~&])")
_FORMULA: Final = re.compile(r"[=+\-@\t\r]")

Ids = npt.NDArray[np.int64]


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
    table = snapshot.table("pairs", columns)
    query_ids, image_ids, relevant = (table[name].to_numpy() for name in columns)
    return PairColumns(query_ids, image_ids, relevant, snapshot.gains())


def images_of(
    snapshot: Snapshot, image_ids: Ids, columns: Sequence[str]
) -> dict[int, tuple[Any, ...]]:
    """The columns of these images, by id; holds no more than those."""
    chosen = pa.array(np.unique(image_ids), type=pa.int64())
    found: dict[int, tuple[Any, ...]] = {}
    for batch in snapshot.batches("images", ["image_id", *columns]):
        rows_of_images = batch.filter(pc.is_in(batch.column(0), value_set=chosen))
        ids, *values = (column.to_pylist() for column in rows_of_images.columns)
        found.update(zip(ids, zip(*values, strict=True), strict=True))
    return found


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
