"""Rows in PostgreSQL's binary COPY format, as numpy arrays.

PostgreSQL's documentation, "COPY", "Binary Format": a header, then for each row the number of its
fields and each field as its length and its bytes, then an end; integers of the network's order.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
END: Final = b"\xff\xff"

# PostgreSQL counts microseconds from here.
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)


class BadCopy(ValueError):
    """The bytes are not rows of the expected layout."""


def row_layout(integers: Sequence[str], *, dimension: int | None = None) -> np.dtype[Any]:
    """The layout of a row of 8-byte integers of these names (bigint, or timestamptz as
    microseconds from the year 2000), then, where a dimension is given, a halfvec named "vector".
    """
    fields: list[Any] = [("fields", ">i2")]
    for name in integers:
        fields += [(f"{name}_size", ">i4"), (name, ">i8")]
    if dimension is not None:
        # A halfvec is its dimension, an unused number and its halves.
        fields += [("vector_size", ">i4"), ("dimension", ">i2"), ("unused", ">i2")]
        fields += [("vector", ">f2", (dimension,))]
    return np.dtype(fields)


def _constants(layout: np.dtype[Any]) -> dict[str, int]:
    names = layout.names or ()
    constants = {name: 8 for name in names if name.endswith("_size")}
    constants["fields"] = len(constants)
    if "vector" in names:
        dimension = layout["vector"].shape[0]
        constants |= {"vector_size": 4 + 2 * dimension, "dimension": dimension, "unused": 0}
    return constants


def new_rows(layout: np.dtype[Any], count: int) -> NDArray[np.void]:
    """Rows (count,) of a layout whose values are still to be filled in."""
    rows = np.zeros(count, dtype=layout)
    for name, value in _constants(layout).items():
        rows[name] = value
    return rows


def parse_rows(data: bytes | memoryview, layout: np.dtype[Any]) -> NDArray[np.void]:
    """The rows (n,) of what COPY gave, a view of `data`. Raises BadCopy for anything else, such as
    a null or a vector of another dimension.
    """
    view = memoryview(data)
    body = len(view) - len(HEADER) - len(END)
    whole = body >= 0 and bytes(view[: len(HEADER)]) == HEADER and bytes(view[-len(END) :]) == END
    if not whole or body % layout.itemsize:
        raise BadCopy("The database's rows are not of the expected layout.")
    rows = np.frombuffer(view, dtype=layout, offset=len(HEADER), count=body // layout.itemsize)
    for name, value in _constants(layout).items():
        if not (rows[name] == value).all():
            raise BadCopy(f"The database's rows are not of the expected layout: {name}.")
    return rows


class RowReader(io.RawIOBase):
    """A file of rows as COPY reads it, without a second copy of the rows."""

    def __init__(self, rows: NDArray[np.void]) -> None:
        whole = np.ascontiguousarray(rows).view(np.uint8).data
        self._parts = [part for part in (memoryview(HEADER), whole, memoryview(END)) if len(part)]

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size`; empty at the end."""
        if not self._parts:
            return b""
        part = self._parts.pop(0)
        if 0 <= size < len(part):
            self._parts.insert(0, part[size:])
            part = part[:size]
        return bytes(part)


def microseconds(moment: datetime) -> int:
    """A moment with its time zone as PostgreSQL holds it: microseconds from the year 2000."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment_of(us: int) -> datetime:
    """The moment of so many microseconds from the year 2000."""
    return _EPOCH + timedelta(microseconds=us)
