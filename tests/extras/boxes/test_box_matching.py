"""Boxes: how they agree, their sizes, and files of them."""

from __future__ import annotations

from typing import Any

import pytest

from extras.boxes.coco import CocoError, match_names, read_coco
from extras.boxes.matching import agreement_of, area_of, clipped, iou, matched, size_of

pytestmark = pytest.mark.pure


def box(*bbox: float) -> Any:
    return {"bbox": list(bbox), "group": False}


A, B = box(0, 0, 10, 10), box(20, 20, 10, 10)


def test_boxes_and_their_agreement():
    assert iou(A, box(5, 0, 10, 10)) == 50 / 150
    assert (iou(A, A), iou(A, B)) == (1, 0)
    # The best pairs together, not each box's best: (A, near A) and (B, B).
    assert matched([A, B], [B, box(0, 0, 10, 5)]) == [0.5, 1]
    assert matched([A], [A, B]) == [1, 0]
    assert matched([], []) == []
    found = agreement_of({1: [[A], [A]], 2: [[A], [B]], 3: [[], []], 4: [[A]], 5: [[], [A]]})
    assert (found.images, found.disagreements, found.same) == (4, [2, 5], 0.5)
    assert found.mean_iou == (1 + 0 + 0) / 3
    # iNat2017: half of the box; 32² and 96² are COCO's.
    assert area_of([0, 0, 64, 32]) == 32**2
    assert [size_of([0, 0, 2, area]) for area in (1023, 1024, 9216, 9217)] == [
        "small", "medium", "medium", "large"
    ]  # fmt: skip
    assert clipped(box(-5, 70, 20, 20), 100, 80) == box(0, 70, 15, 10)
    assert clipped(box(99.5, 0, 10, 10), 100, 80) is None


def test_names_of_files():
    images = {1: "a/x.jpg", 2: "b/x.jpg", 3: "c/y z.jpg"}
    names = ["b/x.jpg", "x.jpg", "y z.jpg", "/data/local-files/?d=c/y%20z.jpg", "no.jpg"]
    address = "https://example.org/images/1/0a1b2c3d.jpg"
    assert match_names([*names, address], images) == {
        names[0]: 2, names[2]: 3, names[3]: 3, address: 1
    }  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b'{"images": [{}], "annotations": []}',
     b'{"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 2, "bbox": []}]}',
     b'{"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 1, "bbox": [1]}]}'],
)  # fmt: skip
def test_what_is_no_file_of_boxes(data):
    with pytest.raises(CocoError):
        read_coco(data)
