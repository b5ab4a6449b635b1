"""How many images there are, in time by the number of species and of withdrawn images alone.

Triggers keep the numbers of images (`CorpusCount`, `SpeciesCount`) and of embeddings
(`EmbeddingCount`); the few images that are withdrawn are looked up one by one and taken off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from retrieval.corpus.models import CorpusCount, Image, ImageWithdrawal, SpeciesCount

_IMAGE = Image._meta.db_table
_WITHDRAWAL = ImageWithdrawal._meta.db_table
_CORPUS = CorpusCount._meta.db_table
_SPECIES = SpeciesCount._meta.db_table

# OFFSET 0 keeps a lookup a lookup: else PostgreSQL may join with the whole table.
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
    """How many images there are now, of the whole corpus or within species, without those that are
    withdrawn: now, or at a moment. One SQL query.
    """
    then, moments = withdrawn_then(at)
    if species_ids:
        ids = list(species_ids)
        query = (
            f"SELECT (SELECT coalesce(sum(images), 0) FROM {_SPECIES} WHERE species_id = ANY(%s))"
            f" - (SELECT count(*) {_SPECIES_OF_WITHDRAWN} WHERE i.species_id = ANY(%s) AND {then})"
        )
        return number_of(query, [ids, ids, *moments])
    query = (
        f"SELECT (SELECT coalesce(sum(images), 0) FROM {_CORPUS})"
        f" - (SELECT count(*) FROM {_WITHDRAWAL} w WHERE {then})"
    )
    return number_of(query, moments)


def image_counts(species_ids: Iterable[int]) -> dict[int, int]:
    """How many images each of these species has, without withdrawn ones; those without any are left
    out. One SQL query.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT c.species_id, c.images - coalesce(gone.images, 0) FROM {_SPECIES} c"
            f" LEFT JOIN ({WITHDRAWN_BY_SPECIES}) gone USING (species_id)"
            " WHERE c.species_id = ANY(%s)",
            [list(species_ids)],
        )
        return {species_id: count for species_id, count in cursor.fetchall() if count}


def withdrawn_then(at: datetime | None) -> tuple[str, list[Any]]:
    """A condition on withdrawals `w` with its values: standing at a moment, or now. Those of one
    image don't overlap, so each is an image of its own.
    """
    if at is None:
        return "w.restored_at IS NULL", []
    return "w.withdrawn_at <= %s AND (w.restored_at IS NULL OR w.restored_at > %s)", [at, at]


def number_of(query: str, values: Sequence[Any]) -> int:
    """The one number that a query gives."""
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return int(cursor.fetchone()[0])
