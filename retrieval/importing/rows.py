"""Rows of images into the database: by COPY, compared with what is there as sets."""

from __future__ import annotations

import io
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import count
from typing import Final

from django.db import IntegrityError, connection, transaction
from django.db.models import Max
from django.utils import timezone

from core.locks import lock_key, transaction_lock
from retrieval.corpus.models import Image
from retrieval.embedding.models import Embedding
from retrieval.importing.copy_rows import (
    COLUMNS,
    image_rows,
    moment_field,
    numbered_rows,
    text_field,
)

# Between pieces this thread may have to wait for its turn to run.
_PIECE: Final = 4 * 1024 * 1024
# What a look at a file tells, as against what only its record can say.
_CONTENT: Final = ("sha256", "size_bytes", "format", "width", "height")
_RECORDED: Final = tuple(column for column in COLUMNS if column not in _CONTENT)
# What tells one file from another where its content was not read.
_PLACE: Final = ("file_name", "width", "height")


def _of(row: str, columns: Sequence[str]) -> str:
    return "(" + ", ".join(f"{row}.{column}" for column in columns) + ")"


_SAME_PLACE: Final = f"{_of('i', _PLACE)} = {_of('a', _PLACE)}"
# Of a file that was not read now, but once, what was known of its content stays.
_CONTENT_STAYS: Final = "(a.sha256 = '' AND i.sha256 <> '' AND i.file_name = a.file_name)"
_ARRIVALS: Final = (
    f"CREATE TEMPORARY TABLE import_arrivals ON COMMIT DROP AS "
    f"SELECT 0 AS position, {', '.join(COLUMNS)} FROM retrieval_image WITH NO DATA"
)
# LIMIT makes it one look-up by index for each row, whatever the planner thinks of a new table.
_LOOK: Final = f"""
SELECT a.position, k.id, k.stale
  FROM import_arrivals a LEFT JOIN LATERAL (
    SELECT i.id,
           {_of("i", _RECORDED)} IS DISTINCT FROM {_of("a", _RECORDED)}
           OR NOT ({_CONTENT_STAYS} OR {_of("i", _CONTENT)} = {_of("a", _CONTENT)}) AS changed,
           CASE WHEN '' IN (i.sha256, a.sha256) THEN NOT ({_CONTENT_STAYS} OR {_SAME_PLACE})
                ELSE i.sha256 <> a.sha256 END AS stale
      FROM retrieval_image i WHERE i.dataset = %s AND i.source_id = a.source_id LIMIT 1
  ) k ON true
 WHERE k.id IS NULL OR k.changed
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
class Stored:
    """What became of a batch: images added, updated and left as they were.

    `fresh` says that all were new, and got the ids that they asked for.
    """

    added: int
    updated: int
    skipped: int
    fresh: bool


@transaction.atomic
def image_rows_store(
    *, dataset: str, rows: Sequence[bytes], wanted: Sequence[int | None], above: int, fresh: bool
) -> Stored:
    """Bring a data set's images in, each a row of `copy_rows` with the id that it asks for.

    An image that is known by data set and source id is updated where its row differs. Its
    embeddings are dropped with that if it is another file: by SHA-256 where that is known before
    and after, else by path, and by size where the file was never read. What is known of a file that
    was read once stays when its image comes in place. A new image gets the id that it asks for
    where that is free, else the next free one above all ids and `above`. With `fresh` the rows go
    straight into the table, and are compared only if they turn out not to be new; so pass it where
    they probably are.
    """
    # One import at a time gives out ids.
    transaction_lock(lock_key("corpus"))
    if not rows:
        return Stored(0, 0, 0, fresh)
    if fresh:
        try:
            with transaction.atomic():
                _insert(dataset, rows, _ids(wanted, frozenset(), above))
            return Stored(len(rows), 0, 0, True)
        except IntegrityError:
            pass
    new, changed, stale = _compare(dataset, rows)
    _change(changed)
    Embedding.objects.filter(image_id__in=stale).delete()
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE import_arrivals")
    asked = [wanted[at] for at in new]
    taken = set(Image.objects.filter(pk__in=[one for one in asked if one is not None])
                .values_list("pk", flat=True))  # fmt: skip
    _insert(dataset, [rows[at] for at in new], _ids(asked, taken, above))
    return Stored(
        added=len(new),
        updated=len(changed),
        skipped=len(rows) - len(new) - len(changed),
        fresh=len(new) == len(rows) and not taken,
    )


def _compare(dataset: str, rows: Sequence[bytes]) -> tuple[list[int], dict[int, int], list[int]]:
    """Return the positions of new rows, of changed ones with their images' ids, and which of
    these images are another file now.
    """
    new, changed, stale = [], {}, []
    with connection.cursor() as cursor:
        cursor.execute(_ARRIVALS)
        _copy("import_arrivals", ("position", *COLUMNS), numbered_rows(rows))
        cursor.execute(_LOOK, [dataset])
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


def _ids(wanted: Sequence[int | None], taken: AbstractSet[int], above: int) -> list[int]:
    """Return the ids of new images, in their order."""
    if not taken and None not in wanted:
        return [one for one in wanted if one is not None]
    highest = Image.objects.aggregate(highest=Max("pk"))["highest"]
    free = count(max(above, -1 if highest is None else highest) + 1)
    return [next(free) if one is None or one in taken else one for one in wanted]


def _insert(dataset: str, rows: Sequence[bytes], ids: Sequence[int]) -> None:
    if not rows:
        return
    now = moment_field(timezone.now())
    data = image_rows(rows, ids, text_field(dataset), now)
    _copy("retrieval_image", ("id", "dataset", "created_at", *COLUMNS), data)


def _copy(table: str, columns: Sequence[str], data: bytes) -> None:
    statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT binary)"
    with connection.wrap_database_errors, connection.cursor() as cursor:
        cursor.copy_expert(statement, io.BytesIO(data), size=_PIECE)
