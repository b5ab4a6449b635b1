"""Shared parts of the writers of formats: columns of a snapshot's tables, and values of CSV files
and Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from core.csv_rows import csv_field
from releases.snapshot.snapshot import Header, Snapshot

SPLIT_NAMES: Final = {"val": "validation", "test": "test"}

_MARKUP: Final = re.compile(r"([\\`*_\[\]<>|#~&])")

Ids = npt.NDArray[np.int64]


def images_of(
    snapshot: Snapshot, image_ids: Ids, columns: Sequence[str]
) -> dict[int, tuple[Any, ...]]:
    """The columns of these images, by id; holds only these in memory."""
    chosen = pa.array(np.unique(image_ids), type=pa.int64())
    rows: dict[int, tuple[Any, ...]] = {}
    for batch in snapshot.batches("images", ["image_id", *columns]):
        part = batch.filter(pc.is_in(batch.column(0), value_set=chosen))
        ids, *values = (column.to_pylist() for column in part.columns)
        rows.update(zip(ids, zip(*values, strict=True), strict=True))
    return rows


def csv_value(value: Any) -> str:
    """One value as a field of a CSV file."""
    if isinstance(value, str):
        return csv_field(value)
    if isinstance(value, bool):
        return "1" if value else "0"
    return "" if value is None else repr(value)


def plain(text: str) -> str:
    """The text on one line, with what Markdown and HTML take for markup escaped."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def citation(header: Header) -> str:
    """A BibTeX entry of the release."""
    return (
        f"@misc{{release, title = {{{header.name} v{header.version}}}, "
        f"author = {{{header.made_by or header.name}}}, "
        f"year = {{{header.made_at[:4]}}}, note = {{Made with {header.software}}}}}"
    )


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
