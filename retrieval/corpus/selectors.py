"""The size of the corpus, the names of its data sets, and its images in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count

from core.sql import fetch_all
from retrieval.corpus.counts import image_count
from retrieval.corpus.models import Image, ImageWithdrawal, Species


@dataclass(frozen=True)
class CorpusSize:
    """Numbers of images (without withdrawn ones), species and families."""

    images: int
    species: int
    families: int


def corpus_counts() -> CorpusSize:
    """Count the images that aren't withdrawn, and the species and families in the corpus."""
    kinds = Species.objects.aggregate(species=Count("pk"), families=Count("family", distinct=True))
    unknown = Species.objects.filter(family="").exists()
    return CorpusSize(
        images=image_count(),
        species=kinds["species"],
        families=kinds["families"] - unknown,
    )


# Steps from each name to the next by the index of (data set, source id).
_DATASETS = f"""
WITH RECURSIVE names (dataset) AS (
    (SELECT dataset FROM {Image._meta.db_table} ORDER BY dataset LIMIT 1)
    UNION ALL
    SELECT (SELECT i.dataset FROM {Image._meta.db_table} i WHERE i.dataset > names.dataset
             ORDER BY i.dataset LIMIT 1)
      FROM names WHERE names.dataset IS NOT NULL
)
SELECT dataset FROM names WHERE dataset IS NOT NULL
"""


def datasets() -> list[str]:
    """Return the names of the images' data sets, in order; takes one index look-up per name."""
    return [name for (name,) in fetch_all(_DATASETS)]


@dataclass(frozen=True, slots=True)
class ImagePage:
    """Some images of the corpus in order, with their species."""

    images: list[Image]
    after: int | None
    """The last image's id where more follow, from which the next page goes on."""


_IMAGE = Image._meta.db_table
_THERE = f"""NOT EXISTS (SELECT FROM {ImageWithdrawal._meta.db_table} w
                          WHERE w.image_id = i.id AND w.restored_at IS NULL)"""
_ALL = f"SELECT id FROM {_IMAGE} i WHERE id > %s AND {_THERE} ORDER BY id LIMIT %s"
# Ordered by both columns of the index of species, so that each look-up reads just a page.
_OF_SPECIES = f"""
SELECT i.id FROM unnest(%s::bigint[]) s (id) CROSS JOIN LATERAL (
    SELECT id FROM {_IMAGE} i WHERE i.species_id = s.id AND i.id > %s AND {_THERE}
     ORDER BY i.species_id, i.id LIMIT %s
) i
ORDER BY i.id LIMIT %s
"""
_OF_DATASET = f"""
SELECT id FROM {_IMAGE} i
 WHERE dataset = %s AND source_id > coalesce((SELECT source_id FROM {_IMAGE} WHERE id = %s), '')
   AND {_THERE}
 ORDER BY dataset, source_id LIMIT %s
"""


def corpus_images(
    *,
    species_ids: Sequence[int] = (),
    dataset: str = "",
    after: int | None = None,
    limit: int,
) -> ImagePage:
    """Return images that aren't withdrawn: of species or of the whole corpus by id, or of a data
    set by their ids there, as texts; those that follow the image `after`. The cost depends on
    `limit` and the number of species alone. Two SQL queries, and those for species.
    """
    start = -1 if after is None else after
    values: list[Any]
    if species_ids:
        statement = _OF_SPECIES
        values = [list(species_ids), start, limit + 1, limit + 1]
    elif dataset:
        statement, values = _OF_DATASET, [dataset, start, limit + 1]
    else:
        statement, values = _ALL, [start, limit + 1]
    ids = [image_id for (image_id,) in fetch_all(statement, values)]
    images = Image.objects.select_related("species").prefetch_related("species__names")
    by_id = images.in_bulk(ids[:limit])
    return ImagePage(
        images=[by_id[image_id] for image_id in ids[:limit] if image_id in by_id],
        after=ids[limit - 1] if len(ids) > limit else None,
    )
