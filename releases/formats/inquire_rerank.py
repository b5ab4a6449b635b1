"""INQUIRE-Rerank: the fixed lists of the queries that are fit for re-ranking.

The columns are those of the data set that INQUIRE's authors published for this task, without the
image, and three of our own: query_id, rank, and judged, since an image that nobody judged counts
as not relevant. The list without labels is what a method needs to take part.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from pathlib import Path

from releases.formats.base import Access, Format, ImageFiles, WrittenFile
from releases.formats.fixed_lists import (
    LABEL_COLUMNS,
    ListedImage,
    has_fixed_lists,
    listed_images,
)
from releases.formats.writing import ACCESS, write_csv
from releases.snapshot.snapshot import Snapshot

COLUMNS = tuple(field.name for field in dataclasses.fields(ListedImage))


def write(snapshot: Snapshot, directory: Path, image_files: ImageFiles) -> list[WrittenFile]:
    """Write the lists of each split; nothing where the release has no fixed lists."""
    if not has_fixed_lists(snapshot):
        return []
    unlabeled = [column for column in COLUMNS if column not in LABEL_COLUMNS]
    files = []
    for split, access in ACCESS.items():
        images = list(listed_images(snapshot, split))
        name = f"inquire_rerank/{split}.csv"
        row = attrgetter(*COLUMNS)
        files.append(write_csv(directory, name, access, COLUMNS, map(row, images)))
    name = "inquire_rerank/test_unlabelled.csv"
    row = attrgetter(*unlabeled)
    files.append(write_csv(directory, name, Access.OPEN, unlabeled, map(row, images)))
    return files


FORMAT = Format(
    key="inquire-rerank",
    title="INQUIRE-Rerank",
    about=(
        "The fixed list of each query of which at least one and at most half of the images are "
        "relevant, to be put into a better order."
    ),
    write=write,
)
