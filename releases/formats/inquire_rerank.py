"""INQUIRE-Rerank: the fixed lists of the queries that are fit for re-ranking.

The columns are those of the data set that INQUIRE's authors published for this task, without the
image, and three of our own: query_id, rank, and judged, since an image that nobody judged counts
as not relevant. The list without labels is what a method needs to take part.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

import numpy as np

from releases.formats.base import Files
from releases.formats.writing import images_of
from releases.snapshot.snapshot import Snapshot

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


COLUMNS: Final = tuple(field.name for field in dataclasses.fields(ListedImage))
UNLABELED_COLUMNS: Final = tuple(name for name in COLUMNS if name not in ("relevant", "judged"))


def write(snapshot: Snapshot, files: Files) -> None:
    """Write the lists of each labeled split, and those of the test split without labels; nothing
    where the release has no fixed lists."""
    if next(snapshot.fixed(), None) is None:
        return
    for name, columns, split in (
        *((split, COLUMNS, split) for split in snapshot.labeled_splits),
        ("test_unlabelled", UNLABELED_COLUMNS, "test"),
    ):
        rows = map(attrgetter(*columns), listed_images(snapshot, split))
        files.csv(f"inquire_rerank/{name}.csv", columns, rows)


def listed_images(snapshot: Snapshot, split: str) -> Iterator[ListedImage]:
    """The fixed lists of a split's queries that are fit for re-ranking, by query id and rank; their
    labels where the split is labeled."""
    queries = {
        query_id: query
        for query_id, query in snapshot.queries_of(split).items()
        if query_id in snapshot.rerankable_queries
    }
    labels = snapshot.fixed_labels
    unjudged = 0 if snapshot.header.negatives_known else None
    listed = [fixed for fixed in snapshot.fixed() if fixed.query_id in queries]
    ids = np.array([fixed.image_id for fixed in listed], dtype=np.int64)
    images = images_of(snapshot, ids, _IMAGE_COLUMNS)
    for fixed in listed:
        query = queries[fixed.query_id]
        file_name, species, latitude, longitude, uncertainty, date, license, holder = images[
            fixed.image_id
        ]
        folder = _SPECIES_FOLDER.search(file_name)
        label = labels.get((fixed.query_id, fixed.image_id))
        yield ListedImage(
            query=query.text,
            relevant=int(bool(label)),
            clip_score=fixed.score,
            inat24_image_id=fixed.image_id,
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
            query_id=fixed.query_id,
            rank=fixed.rank,
            judged=unjudged if label is None else 1,
        )
