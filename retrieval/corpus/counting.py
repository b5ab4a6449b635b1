"""The kept numbers of images beside those that a count of the rows gives."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection, transaction

from retrieval.corpus.models import CorpusCount, Image, SpeciesCount

_IMAGE = Image._meta.db_table
_CORPUS = CorpusCount._meta.db_table
_SPECIES = SpeciesCount._meta.db_table

_WRONG = f"""
SELECT s.scientific_name, coalesce(kept.images, 0), coalesce(counted.images, 0)
  FROM (SELECT species_id, count(*) AS images FROM {_IMAGE}
         WHERE species_id IS NOT NULL GROUP BY species_id) counted
  FULL JOIN {_SPECIES} kept USING (species_id)
  JOIN retrieval_species s ON s.id = species_id
 WHERE coalesce(kept.images, 0) <> coalesce(counted.images, 0)
 ORDER BY s.scientific_name
"""
_TOTALS = f"""
SELECT coalesce((SELECT images FROM {_CORPUS}), 0), (SELECT count(*) FROM {_IMAGE})
"""


@dataclass(frozen=True, slots=True)
class WrongCount:
    """A kept number of images that isn't the real one."""

    species: str
    """Scientific name; empty for the whole corpus."""
    kept: int
    counted: int


@transaction.atomic
def image_counts_check(*, repair: bool = False) -> list[WrongCount]:
    """Count the images, whole and by species, and return what was kept wrongly, the corpus first.

    Reads every image; who writes images waits meanwhile. With `repair` the numbers are put right.
    """
    with connection.cursor() as cursor:
        # Who wrote images before is seen whole, and who comes later finds the numbers repaired.
        cursor.execute(f"LOCK TABLE {_IMAGE} IN SHARE ROW EXCLUSIVE MODE")
        cursor.execute(_TOTALS)
        kept, counted = cursor.fetchone()
        cursor.execute(_WRONG)
        wrong = [WrongCount(*row) for row in cursor.fetchall()]
        if kept != counted:
            wrong.insert(0, WrongCount("", kept, counted))
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
