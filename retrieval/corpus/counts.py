"""Numbers of images, counted in a time that depends only on the number of withdrawn images.

Triggers maintain the numbers of images (`CorpusCount`, `SpeciesCount`) and of embeddings
(`EmbeddingCount`); the few withdrawn images are looked up one by one and subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from retrieval.corpus.models import CorpusCount, Image, ImageWithdrawal, SpeciesCount

_IMAGE = Image._meta.db_table
_WITHDRAWAL = ImageWithdrawal._meta.db_table
_CORPUS = CorpusCount._meta.db_table
_SPECIES = SpeciesCount._meta.db_table

# Without OFFSET 0 PostgreSQL may join with the whole table.
_SPECIES_OF_WITHDRAWN = f"""
  FROM {_WITHDRAWAL} w CROSS JOIN LATERAL
       (SELECT species_id FROM {_IMAGE} WHERE id = w.image_id OFFSET 0) i
"""

WITHDRAWN_BY_SPECIES = (
    f"SELECT i.species_id, count(*) AS images {_SPECIES_OF_WITHDRAWN}"
    " WHERE w.restored_at IS NULL GROUP BY i.species_id"
)
"""SQL: species_id (null for unknown) and images, for each species with images withdrawn now."""


def image_count(*, species_ids: Sequence[int] | None = None, at: datetime | None = None) -> int:
    """Return the number of images of the whole corpus or of species, without those that are
    withdrawn now or at a moment. One SQL query.
    """
    condition, moments = withdrawal_condition(at)
    if species_ids:
        ids = list(species_ids)
        query = (
            f"SELECT (SELECT coalesce(sum(images), 0) FROM {_SPECIES} WHERE species_id = ANY(%s))"
            f" - (SELECT count(*) {_SPECIES_OF_WITHDRAWN}"
            f" WHERE i.species_id = ANY(%s) AND {condition})"
        )
        return number_of(query, [ids, ids, *moments])
    query = (
        f"SELECT (SELECT coalesce(sum(images), 0) FROM {_CORPUS})"
        f" - (SELECT count(*) FROM {_WITHDRAWAL} w WHERE {condition})"
    )
    return number_of(query, moments)


def image_counts(species_ids: Iterable[int]) -> dict[int, int]:
    """Return the number of images of each of these species, without withdrawn ones; species without
    images are left out. One SQL query.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT c.species_id, c.images - coalesce(withdrawn.images, 0) FROM {_SPECIES} c"
            f" LEFT JOIN ({WITHDRAWN_BY_SPECIES}) withdrawn USING (species_id)"
            " WHERE c.species_id = ANY(%s)",
            [list(species_ids)],
        )
        return {species_id: count for species_id, count in cursor.fetchall() if count}


def withdrawal_condition(at: datetime | None) -> tuple[str, list[Any]]:
    """Return an SQL condition, that withdrawals `w` hold at a moment or now, and its values.

    An image's withdrawals don't overlap, so at most one of them meets it.
    """
    if at is None:
        return "w.restored_at IS NULL", []
    return "w.withdrawn_at <= %s AND (w.restored_at IS NULL OR w.restored_at > %s)", [at, at]


def number_of(query: str, values: Sequence[Any]) -> int:
    """Return the single number that an SQL query selects."""
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return int(cursor.fetchone()[0])


_WRONG = f"""
SELECT s.scientific_name, coalesce(stored.images, 0), coalesce(counted.images, 0)
  FROM (SELECT species_id, count(*) AS images FROM {_IMAGE}
         WHERE species_id IS NOT NULL GROUP BY species_id) counted
  FULL JOIN {_SPECIES} stored USING (species_id)
  JOIN retrieval_species s ON s.id = species_id
 WHERE coalesce(stored.images, 0) <> coalesce(counted.images, 0)
 ORDER BY s.scientific_name
"""
_TOTALS = f"""
SELECT coalesce((SELECT images FROM {_CORPUS}), 0), (SELECT count(*) FROM {_IMAGE})
"""


@dataclass(frozen=True, slots=True)
class WrongCount:
    """A stored number of images that differs from the real one."""

    species: str
    """Scientific name; empty for the whole corpus."""
    stored: int
    counted: int


@transaction.atomic
def image_counts_check(*, repair: bool = False) -> list[WrongCount]:
    """Count all images and those of each species, and return the wrong numbers, the corpus first.

    Reads every image and blocks writes of images. With `repair` the stored numbers are corrected.
    """
    with connection.cursor() as cursor:
        # Writes before this are counted whole, and later ones find the numbers repaired.
        cursor.execute(f"LOCK TABLE {_IMAGE} IN SHARE ROW EXCLUSIVE MODE")
        cursor.execute(_TOTALS)
        stored, counted = cursor.fetchone()
        cursor.execute(_WRONG)
        wrong = [WrongCount(*row) for row in cursor.fetchall()]
        if stored != counted:
            wrong.insert(0, WrongCount("", stored, counted))
        if repair and wrong:
            cursor.execute(f"DELETE FROM {_SPECIES}")
            cursor.execute(f"DELETE FROM {_CORPUS}")
            cursor.execute(
                f"INSERT INTO {_SPECIES} (species_id, images) SELECT species_id, count(*)"
                f" FROM {_IMAGE} WHERE species_id IS NOT NULL GROUP BY species_id"
            )
            cursor.execute(
                f"INSERT INTO {_CORPUS} (id, images) SELECT 1, count(*) FROM {_IMAGE}"
                " HAVING count(*) > 0"
            )
    return wrong
