"""Boxes, how far two people's agree, and COCO's classes of their size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Final, TypedDict

#: iNat2017, section 3.3: all instances are boxed up to this number.
MOST_BOXES: Final = 10
#: From which IoU on two boxes are of the same instance.
SAME: Final = 0.5
#: Upper bounds of COCO's areas in square pixels: below 32², to 96², and above.
SIZES: Final = {"small": 32.0**2, "medium": 96.0**2, "large": float("inf")}


class Box(TypedDict):
    """One box."""

    bbox: list[float]
    """x, y, width, height in pixels of the upright source image, as COCO has them."""
    group: bool
    """Whether it holds several instances that can't be told apart: COCO's `iscrowd`."""


def clipped(box: Box, width: int, height: int) -> Box | None:
    """The box within its image, to a hundredth of a pixel; None if less than a pixel is left."""
    x, y, w, h = box["bbox"]
    left, top = max(x, 0.0), max(y, 0.0)
    inside = [left, top, min(x + w, width) - left, min(y + h, height) - top]
    if min(inside[2:]) < 1:
        return None
    return Box(bbox=[round(number, 2) for number in inside], group=box["group"])


def area_of(bbox: Sequence[float]) -> float:
    """The instance's area in square pixels: half of its box, as in iNat2017, section 3.3."""
    return bbox[2] * bbox[3] / 2


def size_of(bbox: Sequence[float]) -> str:
    """One of SIZES."""
    area = area_of(bbox)
    return "small" if area < SIZES["small"] else "medium" if area <= SIZES["medium"] else "large"


def iou(one: Box, other: Box) -> float:
    """Intersection over union, 0..1."""
    (x, y, w, h), (u, v, s, t) = one["bbox"], other["bbox"]
    across = min(x + w, u + s) - max(x, u)
    down = min(y + h, v + t) - max(y, v)
    shared = max(across, 0.0) * max(down, 0.0)
    return shared / (w * h + s * t - shared)


def matched(first: Sequence[Box], second: Sequence[Box]) -> list[float]:
    """The IoU of each box with its partner in the assignment whose sum is greatest; 0 for each box
    without one.
    """
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    if not first or not second:
        return [0.0] * max(len(first), len(second))
    table = np.array([[iou(one, other) for other in second] for one in first])
    found: list[float] = table[linear_sum_assignment(table, maximize=True)].tolist()
    return found + [0.0] * (max(len(first), len(second)) - len(found))


@dataclass(frozen=True, slots=True)
class BoxAgreement:
    """How far the boxes of several people agree."""

    images: int
    """That several people boxed."""
    mean_iou: float | None
    """Over all boxes, of which one without a partner counts 0; None without any box."""
    same: float | None
    """The share of the images on which all boxes match at SAME; None without any image."""
    disagreements: list[int]
    """The ids of the other images, ascending."""


def agreement_of(sets: Mapping[int, Sequence[Sequence[Box]]]) -> BoxAgreement:
    """The agreement of every two people's boxes by image id; that no box is possible agrees with
    itself alone.
    """
    several = {image: drawn for image, drawn in sorted(sets.items()) if len(drawn) > 1}
    found = {
        image: [value for pair in combinations(drawn, 2) for value in matched(*pair)]
        for image, drawn in several.items()
    }
    apart = [image for image, values in found.items() if any(value < SAME for value in values)]
    every = [value for values in found.values() for value in values]
    return BoxAgreement(
        images=len(found),
        mean_iou=fmean(every) if every else None,
        same=1 - len(apart) / len(found) if found else None,
        disagreements=apart,
    )
