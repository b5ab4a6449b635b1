"""The fixed lists of the re-ranking task, with what is known of each image in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Final

import numpy as np

from releases.formats.writing import images_of
from releases.snapshot.qrels import is_rerankable
from releases.snapshot.snapshot import Snapshot, SnapshotQuery

_IMAGE_COLUMNS: Final = (
    "file_name",
    "scientific_name",
    "latitude",
    "longitude",
    "location_uncertainty",
    "observed_at",
    "license",
    "rights_holder",
)
#: iNat24 keeps a species' images in a folder "<its id, 5 digits>_<its lineage>".
_SPECIES_FOLDER: Final = re.compile(r"(?:^|/)(\d{5})_[A-Z][^/]*/[^/]*$")


@dataclass(frozen=True, slots=True)
class ListedImage:
    """One image of a query's fixed list, in the columns of the authors' INQUIRE-Rerank."""

    query: str
    relevant: int
    """1 or 0; 0 too where nobody judged it."""
    clip_score: float
    """Cosine similarity to the query's text under the release's `rerank_model`."""
    inat24_image_id: int
    inat24_file_name: str
    supercategory: str
    category: str
    iconic_group: str
    inat24_species_id: int | None
    """As the image's folder says, in iNat24's layout; None elsewhere."""
    inat24_species_name: str
    latitude: float | None
    longitude: float | None
    location_uncertainty: float | None
    date: str
    license: str
    rights_holder: str
    query_id: int
    rank: int
    """From 1, as the model ordered the list."""
    judged: int | None
    """1 where somebody judged it, else 0; None where the release doesn't say."""


#: Columns that hold labels.
LABEL_COLUMNS: Final = ("relevant", "judged")


def listed_images(snapshot: Snapshot, split: str) -> Iterator[ListedImage]:
    """The fixed lists of a split's queries that are fit for re-ranking (`is_rerankable`), by
    query id and rank."""
    queries = snapshot.queries_of(split)
    labels = snapshot.fixed_labels
    unjudged = None if not snapshot.header.negatives_known else 0
    lists = {}
    for query_id, group in groupby(snapshot.fixed(), key=attrgetter("query_id")):
        entries = list(group)
        if query_id in queries and is_rerankable(
            labels.get((query_id, one.image_id), False) for one in entries
        ):
            lists[query_id] = entries
    ids = [one.image_id for entries in lists.values() for one in entries]
    images = images_of(snapshot, np.array(ids, dtype=np.int64), _IMAGE_COLUMNS)
    for query_id, entries in lists.items():
        query: SnapshotQuery = queries[query_id]
        for one in entries:
            file_name, species, latitude, longitude, uncertainty, date, license, holder = images[
                one.image_id
            ]
            folder = _SPECIES_FOLDER.search(file_name)
            label = labels.get((query_id, one.image_id))
            yield ListedImage(
                query=query.text,
                relevant=int(bool(label)),
                clip_score=one.score,
                inat24_image_id=one.image_id,
                inat24_file_name=file_name,
                supercategory=query.supercategory,
                category=query.category,
                iconic_group=query.iconic_group or "",
                inat24_species_id=int(folder[1]) if folder else None,
                inat24_species_name=species,
                latitude=latitude,
                longitude=longitude,
                location_uncertainty=uncertainty,
                date=date,
                license=license,
                rights_holder=holder,
                query_id=query_id,
                rank=one.rank,
                judged=unjudged if label is None else 1,
            )


def has_fixed_lists(snapshot: Snapshot) -> bool:
    """Whether the release has fixed lists at all, fit or not."""
    return next(snapshot.fixed(), None) is not None
