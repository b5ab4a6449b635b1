"""COCO's files of boxes: those of Label Studio, CVAT and others in, detections out."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from core.errors import Refused
from extras.boxes.matching import Box, area_of, size_of

#: What Label Studio puts before the name of an uploaded file.
_UPLOAD: Final = re.compile(r"^[0-9a-f]{8}-")
#: This application's own address of an image.
_ADDRESS: Final = re.compile(r"(?:^|/)images/([0-9]{1,18})/[0-9a-f]{8}\.jpg$")


class CocoError(Refused):
    """The file isn't COCO's, or a part of it is wrong."""


@dataclass(frozen=True, slots=True)
class BoxedImage:
    """An image of a file."""

    file_name: str
    width: float | None
    """Pixels in which its boxes are given, as is the height; None where the file doesn't say."""
    height: float | None
    boxes: list[Box]


def read_coco(data: bytes, *, category: str = "") -> list[BoxedImage]:
    """The images with boxes, of one category or of all, in the file's order. CocoError."""
    try:
        content = json.loads(data)
        names = {one["id"]: str(one["name"]) for one in content.get("categories", [])}
        images = {one["id"]: one for one in content["images"]}
        if category and category not in names.values():
            raise CocoError(f"The file has no category {category!r}: {', '.join(names.values())}.")
        boxes: defaultdict[Any, list[Box]] = defaultdict(list)
        for one in content["annotations"]:
            if category and names.get(one["category_id"]) != category:
                continue
            if one["image_id"] not in images:
                raise CocoError(f"Annotation {one.get('id')} is of an image that isn't there.")
            bbox = [float(number) for number in one["bbox"]]
            if len(bbox) != 4 or not all(map(math.isfinite, bbox)):
                raise CocoError(f"Annotation {one.get('id')} has no box of four numbers.")
            boxes[one["image_id"]].append(Box(bbox=bbox, group=bool(one.get("iscrowd"))))
        return [
            BoxedImage(str(one["file_name"]), one.get("width"), one.get("height"), boxes[key])
            for key, one in images.items()
            if key in boxes
        ]
    except CocoError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CocoError(f"This isn't a COCO file of boxes: {error!r}.") from error


def match_names(names: Iterable[str], images: Mapping[int, str]) -> dict[str, int]:
    """Which of `images`, paths by id, each name of a file means; names that mean none are left out.

    A name is a path, its last part where no other image has the same, either with what Label
    Studio puts before it, or this application's address of an image.
    """
    paths = {path: key for key, path in images.items()}
    last = Counter(map(_last, images.values()))
    by_last = {_last(path): key for key, path in images.items() if last[_last(path)] == 1}
    found = {}
    for name in names:
        path = unquote(name.partition("?d=")[2] or name)
        address = _ADDRESS.search(path)
        if address and int(address[1]) in images:
            found[name] = int(address[1])
            continue
        short = _last(path)
        for known, key in ((paths, path), (by_last, short), (by_last, _UPLOAD.sub("", short))):
            if key in known:
                found[name] = known[key]
                break
    return found


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def detections(
    description: str,
    categories: Iterable[Mapping[str, Any]],
    images: Iterable[Mapping[str, Any]],
    boxes: Iterable[tuple[int, int, list[float], bool]],
) -> dict[str, Any]:
    """COCO's document of detections. `boxes`: (image id, category id, bbox, group) in its order.

    Areas are half of the boxes', as in iNat2017 (section 3.3); `info` counts COCO's sizes.
    """
    annotations = [
        {
            "id": number,
            "image_id": image_id,
            "category_id": category,
            "bbox": bbox,
            "area": area_of(bbox),
            "iscrowd": int(group),
        }
        for number, (image_id, category, bbox, group) in enumerate(boxes, start=1)
    ]
    sizes = Counter(size_of(one["bbox"]) for one in annotations)  # type: ignore[arg-type]
    return {
        "info": {"description": description, "sizes": dict(sorted(sizes.items()))},
        "licenses": [],
        "categories": list(categories),
        "images": list(images),
        "annotations": annotations,
    }
