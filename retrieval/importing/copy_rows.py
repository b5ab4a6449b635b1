"""Images as rows of PostgreSQL's COPY in its binary format.

PostgreSQL's documentation, "COPY", "Binary Format": each field comes after its length, numbers in
network order, a moment in microseconds since 2000. Binary, since writing and reading floating point
numbers and moments as text would be a large part of the work.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from struct import Struct
from typing import Final

from core.binary_copy import END, HEADER, microseconds
from retrieval.importing.records import ImageRecord

COLUMNS: Final = (
    "source_id", "file_name", "license", "license_url", "rights_holder", "sha256", "format",
    "width", "height", "size_bytes", "species_id", "root_id", "observed_at", "latitude",
    "longitude", "location_uncertainty",
)  # fmt: skip
"""What `image_row` writes, in this order."""

Facts = tuple[str, str, int, int, int]
"""A file's SHA-256, format, width, height and size in bytes; "" and 0 for what nobody has read."""

_NULL: Final = Struct(">i").pack(-1)
_length: Final = Struct(">i").pack
_double: Final = Struct(">id").pack
_bigint: Final = Struct(">iq").pack
_integer: Final = Struct(">ii").pack
_sizes: Final = Struct(">iiiiiq").pack
_count: Final = Struct(">h").pack


def image_row(
    record: ImageRecord, facts: Facts, species_id: int | None, root_id: int | None
) -> bytes:
    """Return the fields of an image."""
    source_id, file_name = record.source_id.encode(), record.file_name.encode()
    holder = record.rights_holder.encode()
    sha256, kind, width, height, size_bytes = facts
    observed, latitude, longitude = record.observed_at, record.latitude, record.longitude
    uncertainty = record.location_uncertainty
    return b"".join(
        (
            _length(len(source_id)),
            source_id,
            _length(len(file_name)),
            file_name,
            _often(record.license),
            _often(record.license_url),
            _length(len(holder)),
            holder,
            text_field(sha256) if sha256 else _NOTHING,
            _often(kind),
            _sizes(4, width, 4, height, 8, size_bytes),
            _NULL if species_id is None else _bigint(8, species_id),
            _NULL if root_id is None else _bigint(8, root_id),
            _NULL if observed is None else moment_field(observed),
            _NULL if latitude is None else _double(8, latitude),
            _NULL if longitude is None else _double(8, longitude),
            _NULL if uncertainty is None else _double(8, uncertainty),
        )
    )


def numbered_rows(rows: Iterable[bytes]) -> bytes:
    """Return a whole COPY of rows, each after its position from 0, an integer of 32 bits."""
    count = _count(1 + len(COLUMNS))
    parts = [HEADER]
    for position, row in enumerate(rows):
        parts += (count, _integer(4, position), row)
    parts.append(END)
    return b"".join(parts)


def image_rows(rows: Iterable[bytes], ids: Iterable[int], *same: bytes) -> bytes:
    """Return a whole COPY of rows, each after its id and the fields that are the same in all."""
    count = _count(1 + len(same) + len(COLUMNS))
    between = b"".join(same)
    parts = [HEADER]
    for row, number in zip(rows, ids, strict=True):
        parts += (count, _bigint(8, number), between, row)
    parts.append(END)
    return b"".join(parts)


def text_field(text: str) -> bytes:
    """Return a text as a field."""
    data = text.encode()
    return _length(len(data)) + data


def moment_field(moment: datetime) -> bytes:
    """Return a moment, which has a time zone, as a field."""
    return _bigint(8, microseconds(moment))


_NOTHING: Final = text_field("")
_often = lru_cache(maxsize=1000)(text_field)
