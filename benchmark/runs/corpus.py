"""Which images a run on a release may hold."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import numpy as np
import numpy.typing as npt
from django.db.models import Q, QuerySet

from benchmark.releases.models import Release
from benchmark.runs.selectors import release_data
from retrieval.corpus.models import Image, ImageWithdrawal

#: Ids in one look-up.
IDS_AT_A_TIME: Final = 10_000


def corpus_moment(release: Release) -> datetime | None:
    """Which state of the corpus a release ranks: that of its making, so that images withdrawn since
    still count and later ones don't. For an imported release None, the corpus as it is."""
    return None if release.origin == Release.Origin.IMPORTED else release.made_at


def in_corpus(release: Release, image_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """(n,) whether each image belongs to the corpus that a release ranks.

    Where the images of an imported benchmark aren't here, every id passes. NoSnapshot as
    `run_selectors.release_data`.
    """
    if not release_data(release).header.corpus_images:
        return np.ones(len(image_ids), dtype=np.bool_)
    ids, places = np.unique(image_ids, return_inverse=True)
    known = np.zeros(len(ids), dtype=np.bool_)
    images = _corpus(corpus_moment(release))
    for start in range(0, len(ids), IDS_AT_A_TIME):
        part = slice(start, start + IDS_AT_A_TIME)
        found = images.filter(pk__in=ids[part].tolist()).values_list("pk", flat=True)
        known[part] = np.isin(ids[part], np.fromiter(found, dtype=np.int64))
    return known[places]


def withdrawn_since(release: Release) -> int:
    """How many images of the corpus that a release ranks were withdrawn after it was made: they
    still count in it, and runs may hold them."""
    moment = corpus_moment(release)
    if moment is None:
        return 0
    since = ImageWithdrawal.objects.filter(restored_at__isnull=True, withdrawn_at__gt=moment)
    return _corpus(moment).filter(pk__in=since.values("image_id")).count()


def _corpus(moment: datetime | None) -> QuerySet[Image]:
    if moment is None:
        return Image.objects.all()
    withdrawn = ImageWithdrawal.objects.filter(
        Q(restored_at__isnull=True) | Q(restored_at__gt=moment), withdrawn_at__lte=moment
    )
    return Image.objects.filter(created_at__lte=moment).exclude(pk__in=withdrawn.values("image_id"))
