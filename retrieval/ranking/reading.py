"""Reading embeddings out of the database, by binary COPY."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from core.binary_copy import moment_of, parse_rows, row_layout
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.arithmetic import Halves, Rows
from retrieval.ranking.files import Mapped
from retrieval.ranking.selection import ids_of, moments_of, vectors_of
from retrieval.ranking.state import ids_by, partition

# Rows of a matrix that are compared with the database before it is extended.
_COMPARED: Final = 64


@dataclass(frozen=True, eq=False, slots=True)
class Chunk:
    """Embeddings by ascending image id."""

    image_ids: Rows
    """(n,)"""
    moments: NDArray[np.int64]
    """(n,) microseconds from the year 2000."""
    vectors: Halves
    """(n, d)"""
    fingerprint: int
    """The sum of their marks."""


def read_after(model: EmbeddingModel, after: int | None, *, until: int, limit: int) -> Chunk | None:
    """The next embeddings behind an image id that were stored until then; None for none."""
    where, values = "e.created_at <= %s", list[Any]([moment_of(until)])
    if after is not None:
        where, values = f"e.image_id > %s AND {where}", [after, *values]
    return _read(model, where, values, f"LIMIT {int(limit)}")


def read_images(
    model: EmbeddingModel, image_ids: Rows, *, until: int, since: int | None = None
) -> Chunk | None:
    """The embeddings of these images that were stored until then, after `since`; None for none."""
    where = "e.image_id = ANY(%s) AND e.created_at <= %s"
    values: list[Any] = [image_ids.tolist(), moment_of(until)]
    if since is not None:
        where += " AND e.created_at > %s"
        values.append(moment_of(since))
    return _read(model, where, values)


def newer_ids(model: EmbeddingModel, since: int, until: int) -> Rows:
    """The images (n,), ascending, whose embeddings were stored after `since` and until then."""
    found = ids_by(
        f"SELECT e.image_id FROM {partition(model)} e "
        "WHERE e.created_at > %s AND e.created_at <= %s",
        [moment_of(since), moment_of(until)],
    )
    return np.sort(found)


def some_differ(model: EmbeddingModel, mapped: Mapped, removed: Rows) -> bool:
    """Whether some rows of a matrix, chosen at random, are not what the database holds; rows that
    were `removed`, ascending, aren't looked at.
    """
    rows = mapped.manifest.rows
    if not rows:
        return False
    chosen = np.unique(np.random.default_rng().integers(rows, size=_COMPARED))
    return bool(len(differing_rows(model, mapped, np.setdiff1d(chosen, removed))))


def differing_rows(model: EmbeddingModel, mapped: Mapped, rows: Rows) -> Rows:
    """Which of these rows, ascending, the database holds otherwise, or not at all."""
    parts = mapped.parts
    image_ids, moments = ids_of(parts, rows), moments_of(parts, rows)
    stored = read_images(model, np.unique(image_ids), until=mapped.manifest.watermark)
    if stored is None:
        return rows
    places = np.searchsorted(stored.image_ids, image_ids)
    places[places == len(stored.image_ids)] = 0
    same = (stored.image_ids[places] == image_ids) & (stored.moments[places] == moments)
    same &= (vectors_of(parts, rows)[:, : mapped.manifest.dimension].view(np.int16)
             == stored.vectors[places].view(np.int16)).all(axis=1)  # fmt: skip
    return rows[~same]


def _read(model: EmbeddingModel, where: str, values: list[Any], limit: str = "") -> Chunk | None:
    layout = row_layout(["image_id", "created_at", "mark"], dimension=model.dimension)
    target = BytesIO()
    with connection.cursor() as cursor, connection.wrap_database_errors:
        statement = cursor.mogrify(
            "SELECT e.image_id, e.created_at, retrieval_embedding_mark(e.image_id, e.created_at),"
            f" e.vector FROM {partition(model)} e WHERE {where} ORDER BY e.image_id {limit}",
            values,
        ).decode()
        cursor.copy_expert(f"COPY ({statement}) TO STDOUT (FORMAT binary)", target)
    rows = parse_rows(target.getbuffer(), layout)
    if not len(rows):
        return None
    marks = rows["mark"].astype(np.int64)
    return Chunk(
        image_ids=rows["image_id"].astype(np.int64),
        moments=rows["created_at"].astype(np.int64),
        vectors=rows["vector"].astype(np.float16),
        # Halves of the numbers, whose sums have room.
        fingerprint=(int((marks >> 32).sum()) << 32) + int((marks & 0xFFFFFFFF).sum()),
    )
