"""coco/boxes.json: the boxes as COCO's detections; coco/boxes_val.json: those of
the validation queries.

A category is a query, so that a detector is asked for what its text says. Areas are half of the
boxes', as in iNat2017 (section 3.3); `info` counts the boxes of each of COCO's sizes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from labeling.boxes.coco import detections
from releases.formats.base import Files
from releases.formats.writing import images_of
from releases.snapshot.snapshot import ReleasedBox, Snapshot


def write(snapshot: Snapshot, files: Files) -> None:
    """Write the boxes; nothing where there are none."""
    if boxes := list(snapshot.boxes()):
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
