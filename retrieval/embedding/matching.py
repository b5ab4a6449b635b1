"""Which image each row of a folder of embeddings belongs to.

Others name images as they like: by id, by path with or without a suffix, from a folder of their
own. The rows' names go into a temporary table and are joined with the images there, however many
there are; this process holds a batch of them at a time.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from django.db import connection, transaction

from core.sql import copy
from retrieval.embedding.files import Layout, LayoutRefused, as_text

SAMPLE: Final = 2000
"""The number of rows, spread over the files, by which the way of matching is chosen."""
BATCH: Final = 20_000
_KEYS: Final = "embedding_import_key"
_ROWS: Final = "embedding_import_row"


class Way(StrEnum):
    """The property of an image that a column contains."""

    SOURCE_ID = "id in the source data set"
    FILE_NAME = "file name"
    IMAGE_ID = "image id"


class LeftOut(StrEnum):
    """Why a row has no image."""

    UNMATCHED = "names no image of the corpus"
    AMBIGUOUS = "fits several images"
    REPEATED = "names an image that an earlier row names"


@dataclass(frozen=True, slots=True)
class Key:
    """The column by which rows are matched with images, and how."""

    column: str
    way: Way
    has_dataset: bool = False
    """The files have a column `dataset` with the id's data set."""
    levels: tuple[int, ...] = (1,)
    """For file names: how many last parts of two paths are compared, highest first."""

    def __str__(self) -> str:
        return f"{self.column}, taken as the {self.way}" + (
            " within the column dataset" if self.has_dataset else ""
        )


@dataclass(frozen=True, slots=True)
class Matches:
    """How many rows have an image; the others match none, several, or one of an earlier row.

    The rows themselves are in a temporary table: `matches_between`.
    """

    matched: int
    unmatched: int
    ambiguous: int
    repeated: int


class _NoNames(LayoutRefused):
    """A column contains no names."""


# Columns that usually identify images, the most reliable first.
_KNOWN: Final = (
    ("source_id", Way.SOURCE_ID),
    ("image_path", Way.FILE_NAME),
    ("file_name", Way.FILE_NAME),
    ("filename", Way.FILE_NAME),
    ("path", Way.FILE_NAME),
    ("image_id", Way.SOURCE_ID),
    ("photo_id", Way.SOURCE_ID),
    ("id", Way.SOURCE_ID),
    ("image_id", Way.IMAGE_ID),
    ("id", Way.IMAGE_ID),
    ("key", Way.SOURCE_ID),
    ("key", Way.FILE_NAME),
)


def key_choose(*, layout: Layout, dataset: str | None = None, column: str | None = None) -> Key:
    """Choose the column, and the way, by which rows are matched with images (of one data set).

    It is the one by which most rows of a sample match exactly one image; if none does, all rows are
    tried. A given column is the only one tried. Raises LayoutRefused if nothing matches, if two
    columns match different images and none was given, or if ids match images of the corpus and, as
    source ids, images of several data sets.
    """
    keys = _candidates(layout, dataset, column)
    sample = max(1, SAMPLE // len(layout.parts))
    for at_most in (sample, None):
        with _scratch():
            counts = [
                _count(layout, key, dataset, number, at_most, given=column is not None)
                for number, key in enumerate(keys)
            ]
            best = max(range(len(keys)), key=lambda number: (counts[number], -number))
            if not counts[best]:
                continue
            if column is None and not keys[best].has_dataset:
                _refuse_disagreement(layout, keys, counts, best)
            _refuse_doubt(layout, keys, best)
            return replace(keys[best], levels=_levels(best))
    raise LayoutRefused(layout.directory, _nothing_fits(layout, keys, dataset))


def rows_match(*, layout: Layout, key: Key, dataset: str | None = None) -> Matches:
    """Match all rows, into a temporary table of this connection that `matches_between` reads.

    Of several images that fit a path, the one with exactly this path matches, else the one that
    shares more of it.
    """
    with _scratch(), connection.cursor() as cursor:
        _keys_fill(layout, key)
        _match(key, dataset, 0)
        cursor.execute(f"DROP TABLE IF EXISTS {_ROWS}")
        # Only the first row of an image is used.
        cursor.execute(
            f"CREATE TEMPORARY TABLE {_ROWS} AS SELECT position, image_id, found > 1 AS ambiguous,"
            " found = 1 AND row_number() OVER (PARTITION BY image_id, found = 1 ORDER BY position)"
            f" > 1 AS repeated FROM {_table(0)}"
        )
        cursor.execute(f"CREATE UNIQUE INDEX ON {_ROWS} (position)")
        cursor.execute(
            "SELECT count(*), count(*) FILTER (WHERE ambiguous), count(*) FILTER (WHERE repeated)"
            f" FROM {_ROWS}"
        )
        fitting, ambiguous, repeated = cursor.fetchone()
        cursor.execute(f"ANALYZE {_ROWS}")
    return Matches(
        matched=fitting - ambiguous - repeated,
        unmatched=layout.rows - fitting,
        ambiguous=ambiguous,
        repeated=repeated,
    )


def matches_between(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions and image ids (n,) int64 of the matched rows from position `first` to before
    `last`, by position."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT position, image_id FROM {_ROWS} WHERE position >= %s AND position < %s"
            " AND NOT ambiguous AND NOT repeated ORDER BY position",
            [first, last],
        )
        rows = np.array(cursor.fetchall(), dtype=np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def rows_left_out(left_out: LeftOut, *, limit: int) -> list[tuple[int, str | None]]:
    """Return position and key of the first rows that are left out for one reason."""
    condition = {
        LeftOut.UNMATCHED: "r.position IS NULL",
        LeftOut.AMBIGUOUS: "r.ambiguous",
        LeftOut.REPEATED: "r.repeated",
    }[left_out]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT k.position, k.key FROM {_KEYS} k LEFT JOIN {_ROWS} r USING (position)"
            f" WHERE {condition} ORDER BY k.position LIMIT %s",
            [limit],
        )
        rows: list[tuple[int, str | None]] = cursor.fetchall()
        return rows


def _candidates(layout: Layout, dataset: str | None, column: str | None) -> list[Key]:
    if column is not None and column not in layout.columns:
        raise LayoutRefused(
            layout.parts[0].metadata,
            f"has no column {column!r}; it has {', '.join(layout.columns)}",
        )
    known = [(column, way) for way in Way] if column else _KNOWN
    own = dataset is None and "dataset" in layout.columns
    keys = [
        Key(name, way, has_dataset=own and way is Way.SOURCE_ID and name == "source_id")
        for name, way in known
        if name in layout.columns
    ]
    if not keys:
        raise LayoutRefused(
            layout.parts[0].metadata,
            "has no column that is known to name images; say which does it with --key. It has "
            + ", ".join(layout.columns),
        )
    return keys


def _table(number: int) -> str:
    return f"embedding_import_match_{number}"


@contextmanager
def _scratch() -> Iterator[None]:
    """A transaction with memory for large joins."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL work_mem = '128MB'")
        yield


def _count(
    layout: Layout, key: Key, dataset: str | None, number: int, at_most: int | None, *, given: bool
) -> int:
    """Match a sample by `key`; returns how many of its rows match exactly one image."""
    try:
        _keys_fill(layout, key, at_most)
    except _NoNames:
        if given:
            raise
        return 0
    _match(key, dataset, number)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {_table(number)} WHERE found = 1")
        return int(cursor.fetchone()[0])


def _keys_fill(layout: Layout, key: Key, at_most: int | None = None) -> None:
    columns = [key.column, *(["dataset"] if key.has_dataset else [])]
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {_KEYS}")
        cursor.execute(f"CREATE TEMPORARY TABLE {_KEYS} (position bigint, key text, dataset text)")
        for first, rows in layout.metadata(columns, batch=BATCH, at_most=at_most):
            try:
                names = [as_text(rows.column(name)) for name in columns]
            except (ValueError, pa.ArrowException) as error:
                raise _NoNames(layout.directory, f"the column {key.column} {error}") from error
            if key.way is Way.FILE_NAME:
                slashes = pc.replace_substring(names[0], "\\", "/")
                names[0] = pc.replace_substring_regex(slashes, r"^(\./)+", "")
            positions = pa.array(np.arange(first, first + rows.num_rows))
            table = pa.table(
                [positions, *names], names=["position", "key", "dataset"][: len(names) + 1]
            )
            data = io.BytesIO()
            pa_csv.write_csv(table, data, pa_csv.WriteOptions(include_header=False))
            data.seek(0)
            copy(f"COPY {_KEYS} ({', '.join(table.column_names)}) FROM STDIN (FORMAT csv)", data)
        cursor.execute(f"ANALYZE {_KEYS}")


def _match(key: Key, dataset: str | None, number: int) -> None:
    """Create the table of position, image id, number of images that fit as well, and number of
    shared parts of the path.
    """
    target = _table(number)
    where, values = ("AND i.dataset = %s", [dataset]) if dataset is not None else ("", [])
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {target}")
        cursor.execute(
            f"CREATE TEMPORARY TABLE {target}"
            " (position bigint, image_id bigint, found bigint, shared int)"
        )
        for level in key.levels if key.way is Way.FILE_NAME else (0,):
            cursor.execute(
                f"INSERT INTO {target} SELECT position, min(id), count(*), min(shared) FROM ("
                " SELECT c.*, rank() OVER (PARTITION BY position ORDER BY named DESC, shared DESC)"
                f" FROM ({_pairs(key, level)} {where} AND NOT EXISTS"
                f" (SELECT FROM {target} m WHERE m.position = k.position)) c"
                ") r WHERE rank = 1 GROUP BY position",
                values,
            )
            cursor.execute(f"ANALYZE {target}")


def _pairs(key: Key, level: int) -> str:
    """Return SQL for rows of the table of keys (k) with the images (i) that they may match."""
    source = f"FROM {_KEYS} k JOIN retrieval_image i ON"
    plain = f"SELECT k.position, i.id, true AS named, 0 AS shared {source}"
    if key.way is Way.IMAGE_ID:
        number = "CASE WHEN k.key ~ '^[0-9]{1,18}$' THEN k.key::bigint END"
        return f"{plain} i.id = {number} WHERE true"
    if key.way is Way.SOURCE_ID:
        dataset = "AND i.dataset = k.dataset" if key.has_dataset else ""
        return f"{plain} i.source_id = k.key {dataset} WHERE true"
    # One path is the end of the other. The suffix may be missing; img2dataset and webdataset cut it
    # at the first point of the last part.
    cuts = ("", r"\.[^./]*$", r"\.[^/]*$")
    whole = [f"regexp_replace(i.file_name, '{cut}', '')" if cut else "i.file_name" for cut in cuts]
    same = " OR ".join(
        f"k.key = {name} OR right(k.key, length({name}) + 1) = '/' || {name}"
        f" OR right({name}, length(k.key) + 1) = '/' || k.key"
        for name in whole
    )
    return (
        f"SELECT k.position, i.id, i.file_name = k.key AS named,"
        f" least({_parts('i.file_name')}, {_parts('k.key')}) AS shared {source}"
        f" {_tail('i.file_name', level)} = {_tail('k.key', level)} WHERE ({same})"
    )


def _parts(path: str) -> str:
    return f"cardinality(string_to_array({path}, '/'))"


def _tail(path: str, count: int) -> str:
    """SQL for a path's last `count` parts, cut at the first point of the last one."""
    last = f"split_part({path}, '/', -1)"
    stem = f"split_part({last}, '.', 1)"
    before = "".join(f"split_part({path}, '/', -{back}) || '/' || " for back in range(count, 1, -1))
    return before + stem


def _levels(number: int) -> tuple[int, ...]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT DISTINCT shared FROM {_table(number)} WHERE found = 1 ORDER BY shared DESC"
        )
        return tuple(row[0] for row in cursor.fetchall())


def _refuse_disagreement(layout: Layout, keys: list[Key], counts: list[int], best: int) -> None:
    """Raise LayoutRefused if two ways match different images: a person must choose."""
    for other in range(len(keys)):
        if other == best or 2 * counts[other] < counts[best]:
            continue
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT a.position, a.image_id, b.image_id"
                f" FROM {_table(best)} a JOIN {_table(other)} b USING (position)"
                " WHERE a.found = 1 AND b.found = 1 AND a.image_id <> b.image_id LIMIT 1"
            )
            row = cursor.fetchone()
        if row is not None:
            raise LayoutRefused(
                layout.directory,
                f"{layout.name(row[0])} is image {row[1]} by the column {keys[best]}, and image "
                f"{row[2]} by {keys[other]}; say with --key which column is right",
            )


def _refuse_doubt(layout: Layout, keys: list[Key], best: int) -> None:
    """Raise LayoutRefused for image ids that are also source ids of several data sets."""
    key = keys[best]
    other = Key(key.column, Way.SOURCE_ID)
    if key.way is not Way.IMAGE_ID or other not in keys:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT a.position, a.image_id FROM {_table(best)} a"
            f" JOIN {_table(keys.index(other))} b USING (position)"
            " WHERE a.found = 1 AND b.found > 1 LIMIT 1"
        )
        row = cursor.fetchone()
    if row is not None:
        raise LayoutRefused(
            layout.directory,
            f"{layout.name(row[0])} is image {row[1]} by the column {key}, and several data sets "
            "have images of that id; say with --dataset whose images these are",
        )


def _nothing_fits(layout: Layout, keys: list[Key], dataset: str | None) -> str:
    columns = list(dict.fromkeys(key.column for key in keys))
    _, rows = next(layout.metadata(columns, batch=1, at_most=1))
    first: dict[str, Any] = rows.to_pylist()[0]
    said = ", ".join(f"{name} {value!r}" for name, value in first.items())
    of = f"of the data set {dataset!r}" if dataset else "of the corpus"
    return f"no row names an image {of}. The first says {said}"
