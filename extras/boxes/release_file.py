"""The table `boxes` of a snapshot, and coco/boxes.json: the boxes as COCO's detections;
coco/boxes_val.json: those of the validation queries.

A category is a query, so that a detector is asked for what its text says. Areas are half of the
boxes', as in iNat2017 (section 3.3); `info` counts the boxes of each of COCO's sizes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from extras.boxes.coco import detections
from extras.boxes.selectors import BoxWork, decisive
from labeling.queries.models import Benchmark
from releases.formats.base import Files
from releases.formats.writing import images_of
from releases.making.labels import complete_queries
from releases.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ReleasedBox:
    """A box on an image that is relevant for a query."""

    query_id: int
    image_id: int
    x: float
    """Of its left edge, in pixels of the upright source image, as are the others."""
    y: float
    width: float
    height: float
    group: bool
    """Whether it holds several instances that can't be told apart."""


def released_boxes(benchmark: Benchmark | None = None) -> Iterator[ReleasedBox]:
    """The boxes that count on the images of queries that ask for them, by query id and image id.
    Four SQL queries each.
    """
    queries = complete_queries(benchmark).filter(boxed__isnull=False)
    for query in queries.select_related("benchmark", "boxed"):
        for image_id, sets in sorted(BoxWork(query).sets.items()):
            for box in decisive(sets).boxes:
                x, y, width, height = box["bbox"]
                yield ReleasedBox(query.query_id, image_id, x, y, width, height, box["group"])


def snapshot_boxes(snapshot: Snapshot) -> Iterator[ReleasedBox]:
    """The boxes of a snapshot, by query id and image id: imported benchmarks have none."""
    rows = snapshot.rows("boxes") if snapshot.has_table("boxes") else ()
    return (ReleasedBox(*values) for values in rows)


def write(snapshot: Snapshot, files: Files) -> None:
    """Write the boxes; nothing where there are none."""
    if boxes := list(snapshot_boxes(snapshot)):
        files.text(f"coco/boxes{files.labels}.json", _parts(snapshot, boxes))


def _parts(snapshot: Snapshot, boxes: list[ReleasedBox]) -> Iterator[str]:
    ids = np.array([one.image_id for one in boxes], dtype=np.int64)
    images = images_of(snapshot, ids, ("file_name", "width", "height"))
    boxed = {one.query_id for one in boxes}
    content = detections(
        f"{snapshot.header.name}: boxes of what its queries ask for",
        (
            {"id": key, "name": query.text, "supercategory": query.category}
            for key, query in snapshot.queries.items()
            if key in boxed
        ),
        (
            {"id": key, "file_name": path, "width": width, "height": height}
            for key, (path, width, height) in sorted(images.items())
        ),
        (
            (one.image_id, one.query_id, [one.x, one.y, one.width, one.height], one.group)
            for one in boxes
        ),
    )
    yield json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    yield "\n"
