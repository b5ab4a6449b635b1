"""The size of the corpus and the names of its data sets."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count

from core.sql import fetch_all
from retrieval.corpus.counts import image_count
from retrieval.corpus.models import Image, Species


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
