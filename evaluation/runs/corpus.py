"""Which images a run on a release may hold."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from django.db.models import Q, QuerySet

from evaluation.runs.selectors import release_data
from releases.models import Release
from retrieval.corpus.models import Image, ImageWithdrawal

#: Ids in one look-up.
IDS_AT_A_TIME: Final = 10_000


class RankedCorpus(NamedTuple):
    """The images that a release ranks, as `retrieval.ranking.selectors` takes them."""

    corpus_at: datetime | None
    """The release's making, so that images withdrawn since still count and later ones don't; None
    for an imported release: the corpus as it is."""
    species_ids: list[int]
    """The filter of its benchmark; empty for the whole corpus."""


def ranked_corpus(release: Release) -> RankedCorpus:
    """The images that a release ranks. At most one SQL query beside that of its benchmark."""
    if release.origin == Release.Origin.IMPORTED:
        return RankedCorpus(None, [])
    return RankedCorpus(release.made_at, release.benchmark.species_ids)


def in_corpus(release: Release, image_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """(n,) whether each image belongs to the corpus that a release ranks.

    Where the images of an imported benchmark aren't here, every id passes. NoSnapshot as
    `release_data`.
    """
    if not release_data(release).header.corpus_images:
        return np.ones(len(image_ids), dtype=np.bool_)
    ids, places = np.unique(image_ids, return_inverse=True)
    known = np.zeros(len(ids), dtype=np.bool_)
    images = _images(ranked_corpus(release))
    for start in range(0, len(ids), IDS_AT_A_TIME):
        part = slice(start, start + IDS_AT_A_TIME)
        present = images.filter(pk__in=ids[part].tolist()).values_list("pk", flat=True)
        known[part] = np.isin(ids[part], np.fromiter(present, dtype=np.int64))
    return known[places]


def withdrawn_since(release: Release) -> int:
    """How many images of the corpus that a release ranks were withdrawn after it was made: they
    still count in it, and runs may hold them."""
    corpus = ranked_corpus(release)
    if corpus.corpus_at is None:
        return 0
    since = ImageWithdrawal.objects.filter(
        restored_at__isnull=True, withdrawn_at__gt=corpus.corpus_at
    )
    return _images(corpus).filter(pk__in=since.values("image_id")).count()


def _images(corpus: RankedCorpus) -> QuerySet[Image]:
    moment, images = corpus.corpus_at, Image.objects.all()
    if corpus.species_ids:
        images = images.filter(species__in=corpus.species_ids)
    if moment is None:
        return images
    withdrawn = ImageWithdrawal.objects.filter(
        Q(restored_at__isnull=True) | Q(restored_at__gt=moment), withdrawn_at__lte=moment
    )
    return images.filter(created_at__lte=moment).exclude(pk__in=withdrawn.values("image_id"))
