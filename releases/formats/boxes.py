"""coco/boxes.json: the boxes as COCO's detections; coco/boxes_val.json: those of
the validation queries.

A category is a query, so that a detector is asked for what its text says. Areas are half of the
boxes', as in iNat2017 (section 3.3); `info` counts the boxes of each of COCO's sizes.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from labeling.boxes.coco import detections
from releases.formats.base import Access, Format, ImageFiles, WrittenFile
from releases.formats.writing import images_of, text_file
from releases.snapshot.snapshot import Snapshot


def write(snapshot: Snapshot, directory: Path, image_files: ImageFiles) -> list[WrittenFile]:
    """Write both files; none of a split without boxes."""
    every = list(snapshot.boxes())
    files = []
    for name, access, queries in (
        ("coco/boxes.json", Access.LABELS, snapshot.queries),
        ("coco/boxes_val.json", Access.OPEN, snapshot.queries_of("val")),
    ):
        boxes = [one for one in every if one.query_id in queries]
        if not boxes:
            continue
        ids = np.array([one.image_id for one in boxes], dtype=np.int64)
        images = images_of(snapshot, ids, ("file_name", "width", "height"))
        boxed = {one.query_id for one in boxes}
        content = detections(
            f"{snapshot.header.name}: boxes of what its queries ask for",
            (
                {"id": key, "name": query.text, "supercategory": query.category}
                for key, query in queries.items()
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
        with text_file(directory, name) as file:
            json.dump(content, file, ensure_ascii=False, separators=(",", ":"))
            file.write("\n")
        files.append(WrittenFile(name, access))
    return files


FORMAT = Format(
    key="boxes",
    title="Boxes",
    about="Boxes as COCO’s detections, a category a query.",
    write=write,
)
