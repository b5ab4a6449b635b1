"""Storing rows of images by COPY, compared with the present rows as sets.

Rows are in the binary format of COPY (PostgreSQL's documentation, "COPY", "Binary Format"): each
field comes after its length, numbers in network order, a timestamp in microseconds since 2000.
Writing and reading numbers and timestamps as text would be a large part of the work.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import count
from struct import Struct
from typing import Final

from django.db import IntegrityError, connection, transaction
from django.db.models import Max
from django.utils import timezone

from core.binary_copy import END, HEADER, microseconds
from core.locks import lock_key, transaction_lock
from core.sql import copy
from retrieval.corpus.models import Image
from retrieval.embedding.models import Embedding
from retrieval.importing.records import CustomValue, ImageRecord

COLUMNS: Final = (
    "source_id", "file_name", "license", "license_url", "rights_holder", "sha256", "format",
    "width", "height", "size_bytes", "species_id", "root_id", "observed_at", "latitude",
    "longitude", "location_uncertainty", "coordinates_obscured", "elevation", "observer",
    "license_text", "taxon_text", "folder", "custom_fields",
)  # fmt: skip
"""The fields of `image_row`, in this order."""

Facts = tuple[str, str, int, int, int]
"""A file's SHA-256, format, width, height and size in bytes; "" and 0 if it wasn't read."""

_NULL: Final = Struct(">i").pack(-1)
_length: Final = Struct(">i").pack
_double: Final = Struct(">id").pack
_bigint: Final = Struct(">iq").pack
_integer: Final = Struct(">ii").pack
_sizes: Final = Struct(">iiiiiq").pack
_field_count: Final = Struct(">h").pack
_FALSE, _TRUE = (Struct(">i?").pack(1, value) for value in (False, True))


def image_row(
    record: ImageRecord, facts: Facts, species_id: int | None, root_id: int | None
) -> bytes:
    """Return the fields of an image."""
    source_id, file_name = record.source_id.encode(), record.file_name.encode()
    holder = record.rights_holder.encode()
    sha256, kind, width, height, size_bytes = facts
    observed, latitude, longitude = record.observed_at, record.latitude, record.longitude
    uncertainty, elevation = record.location_uncertainty, record.elevation
    return b"".join(
        (
            _length(len(source_id)),
            source_id,
            _length(len(file_name)),
            file_name,
            _cached_field(record.license),
            _cached_field(record.license_url),
            _length(len(holder)),
            holder,
            text_field(sha256) if sha256 else _EMPTY,
            _cached_field(kind),
            _sizes(4, width, 4, height, 8, size_bytes),
            _NULL if species_id is None else _bigint(8, species_id),
            _NULL if root_id is None else _bigint(8, root_id),
            _NULL if observed is None else moment_field(observed),
            _NULL if latitude is None else _double(8, latitude),
            _NULL if longitude is None else _double(8, longitude),
            _NULL if uncertainty is None else _double(8, uncertainty),
            _TRUE if record.coordinates_obscured else _FALSE,
            _NULL if elevation is None else _double(8, elevation),
            _cached_field(record.observer),
            _cached_field(record.license_text),
            _cached_field(record.taxon_text),
            _cached_field(record.folder),
            _json_field(record.custom_fields) if record.custom_fields else _NO_FIELDS,
        )
    )


def numbered_rows(rows: Iterable[bytes]) -> bytes:
    """Return the data of a COPY of rows, each after its position from 0, a 32-bit integer."""
    count = _field_count(1 + len(COLUMNS))
    parts = [HEADER]
    for position, row in enumerate(rows):
        parts += (count, _integer(4, position), row)
    parts.append(END)
    return b"".join(parts)


def image_rows(rows: Iterable[bytes], ids: Iterable[int], *same: bytes) -> bytes:
    """Return the data of a COPY of rows, each after its id and the fields `same`."""
    count = _field_count(1 + len(same) + len(COLUMNS))
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


def _json_field(values: Mapping[str, CustomValue]) -> bytes:
    """Return an object as a field of the type jsonb, whose first byte is the format's version."""
    data = b"\x01" + json.dumps(dict(values), ensure_ascii=False).encode()
    return _length(len(data)) + data


def moment_field(moment: datetime) -> bytes:
    """Return a moment with a time zone as a field."""
    return _bigint(8, microseconds(moment))


_EMPTY: Final = text_field("")
_NO_FIELDS: Final = _json_field({})
_cached_field = lru_cache(maxsize=1000)(text_field)

# Between pieces this thread may have to wait for the GIL.
_PIECE: Final = 4 * 1024 * 1024
# Columns that are read from the file; the others come from its record.
_CONTENT: Final = ("sha256", "size_bytes", "format", "width", "height")
_RECORDED: Final = tuple(column for column in COLUMNS if column not in _CONTENT)
# Columns that identify a file whose content was not read.
_PLACE: Final = ("file_name", "width", "height")


def _row(row: str, columns: Sequence[str]) -> str:
    return "(" + ", ".join(f"{row}.{column}" for column in columns) + ")"


_SAME_PLACE: Final = f"{_row('i', _PLACE)} = {_row('a', _PLACE)}"
# The known content of a file that was read once stays when it isn't read again.
_CONTENT_STAYS: Final = "(a.sha256 = '' AND i.sha256 <> '' AND i.file_name = a.file_name)"
_ARRIVALS: Final = (
    f"CREATE TEMPORARY TABLE import_arrivals ON COMMIT DROP AS "
    f"SELECT 0 AS position, {', '.join(COLUMNS)} FROM retrieval_image WITH NO DATA"
)
# LIMIT makes the planner look each row up by the index, whatever it estimates of the new table.
_COMPARE: Final = f"""
SELECT a.position, k.id, k.stale
  FROM import_arrivals a LEFT JOIN LATERAL (
    SELECT i.id,
           {_row("i", _RECORDED)} IS DISTINCT FROM {_row("a", _RECORDED)}
           OR NOT ({_CONTENT_STAYS} OR {_row("i", _CONTENT)} = {_row("a", _CONTENT)}) AS changed,
           CASE WHEN '' IN (i.sha256, a.sha256) THEN NOT ({_CONTENT_STAYS} OR {_SAME_PLACE})
                ELSE i.sha256 <> a.sha256 END AS stale
      FROM retrieval_image i WHERE i.dataset = %s AND i.source_id = a.source_id LIMIT 1
  ) k ON true
 WHERE k.id IS NULL OR k.changed
       AND NOT EXISTS (SELECT FROM retrieval_imagetakedown t WHERE t.image_id = k.id)
 ORDER BY a.position
"""
_CHANGE: Final = f"""
UPDATE retrieval_image i
   SET {", ".join(f"{column} = a.{column}" for column in _RECORDED)},
       {", ".join(
           f"{column} = CASE WHEN {_CONTENT_STAYS} THEN i.{column} ELSE a.{column} END"
           for column in _CONTENT
       )}
  FROM unnest(%s::int[], %s::bigint[]) AS c (position, id)
  JOIN import_arrivals a ON a.position = c.position
 WHERE i.id = c.id
"""  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoredRows:
    """The result of a batch: numbers of images added, updated and unchanged.

    `fresh`: all were new and got their preferred ids.
    """

    added: int
    updated: int
    skipped: int
    fresh: bool


@transaction.atomic
def image_rows_store(
    *, dataset: str, rows: Sequence[bytes], preferred: Sequence[int | None], above: int, fresh: bool
) -> StoredRows:
    """Store a data set's images: rows of `image_row`, with their preferred ids.

    An image that is known by data set and source id is updated if its row differs. If its file is
    another one, its embeddings are deleted: files differ by SHA-256 if that is known before and
    after, else by path, and by width and height if the file was never read. The known content of a
    file stays when the image is imported in place. An image that was taken down stays as it is. A
    new image gets its preferred id if that is free, else the next one above all ids and `above`.
    `fresh`: all rows are probably new, so that they go straight into the table and are compared
    only if they turn out not to be.
    """
    # Only one import at a time assigns ids.
    transaction_lock(lock_key("corpus"))
    if not rows:
        return StoredRows(0, 0, 0, fresh)
    if fresh:
        try:
            with transaction.atomic():
                _insert(dataset, rows, _assign_ids(preferred, frozenset(), above))
            return StoredRows(len(rows), 0, 0, True)
        except IntegrityError:
            pass
    new, changed, stale = _compare(dataset, rows)
    _change(changed)
    Embedding.objects.filter(image_id__in=stale).delete()
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE import_arrivals")
    new_preferred = [preferred[at] for at in new]
    wanted = [image_id for image_id in new_preferred if image_id is not None]
    taken = set(Image.objects.filter(pk__in=wanted).values_list("pk", flat=True))
    _insert(dataset, [rows[at] for at in new], _assign_ids(new_preferred, taken, above))
    return StoredRows(
        added=len(new),
        updated=len(changed),
        skipped=len(rows) - len(new) - len(changed),
        fresh=len(new) == len(rows) and not taken,
    )


def _compare(dataset: str, rows: Sequence[bytes]) -> tuple[list[int], dict[int, int], list[int]]:
    """Return the positions of new rows, the image ids of changed rows by position, and the ids of
    images with another file.
    """
    new, changed, stale = [], {}, []
    with connection.cursor() as cursor:
        cursor.execute(_ARRIVALS)
        _copy("import_arrivals", ("position", *COLUMNS), numbered_rows(rows))
        cursor.execute(_COMPARE, [dataset])
        for position, image_id, is_stale in cursor.fetchall():
            if image_id is None:
                new.append(position)
                continue
            changed[position] = image_id
            if is_stale:
                stale.append(image_id)
    return new, changed, stale


def _change(changed: dict[int, int]) -> None:
    if not changed:
        return
    ids = list(changed.values())
    with connection.cursor() as cursor:
        # In the order of their ids, as embedding locks them.
        cursor.execute(
            "SELECT FROM retrieval_image WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE", [ids]
        )
        cursor.execute(_CHANGE, [list(changed), ids])


def _assign_ids(preferred: Sequence[int | None], taken: AbstractSet[int], above: int) -> list[int]:
    """Return the ids of new images, in their order."""
    if not taken and None not in preferred:
        return [image_id for image_id in preferred if image_id is not None]
    highest = Image.objects.aggregate(highest=Max("pk"))["highest"]
    free = count(max(above, -1 if highest is None else highest) + 1)
    return [
        next(free) if image_id is None or image_id in taken else image_id for image_id in preferred
    ]


def _insert(dataset: str, rows: Sequence[bytes], ids: Sequence[int]) -> None:
    if not rows:
        return
    now = moment_field(timezone.now())
    data = image_rows(rows, ids, text_field(dataset), now)
    _copy("retrieval_image", ("id", "dataset", "created_at", *COLUMNS), data)


def _copy(table: str, columns: Sequence[str], data: bytes) -> None:
    statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT binary)"
    copy(statement, io.BytesIO(data), size=_PIECE)
