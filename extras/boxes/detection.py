"""A detector's boxes as COCO results, and their figures by pycocotools (iNat2017, section 4.2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO
from typing import Any, Final

from core.errors import Invalid
from core.optional import optional

#: COCO's figures in pycocotools' order: average precision, at one IoU and by size, and average
#: recall by boxes an image and category, and by size.
FIGURES: Final = (
    "AP", "AP50", "AP75", "AP small", "AP medium", "AP large",
    "AR1", "AR10", "AR100", "AR small", "AR medium", "AR large",
)  # fmt: skip


def read_results(data: bytes, truth: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries of a results file, of images and categories of `truth`, COCO's document of
    detections. Invalid names the first wrong one, counted from 1.
    """
    try:
        entries = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Invalid({"file": [f"This isn't JSON: {error}."]}) from error
    if not isinstance(entries, list) or not entries:
        raise Invalid({"file": ["A list of image_id, category_id, bbox and score is needed."]})
    images = {one["id"] for one in truth["images"]}
    categories = {one["id"] for one in truth["categories"]}
    for number, entry in enumerate(entries, start=1):
        if problem := _problem(entry, images, categories):
            raise Invalid({"file": [f"Entry {number}: {problem}."]})
    names = ("image_id", "category_id", "bbox", "score")
    return [{name: entry[name] for name in names} for entry in entries]


def _problem(entry: Any, images: set[int], categories: set[int]) -> str:
    if not isinstance(entry, dict):
        return "it isn't an object"
    for name, known in (("image_id", images), ("category_id", categories)):
        if type(entry.get(name)) is not int or entry[name] not in known:
            return f"the release has no boxes of {name} {str(entry.get(name))[:40]}"
    bbox = entry.get("bbox")
    if not isinstance(bbox, list) or len(bbox) != 4 or not all(map(_is_number, bbox)):
        return "bbox isn't four numbers: x, y, width, height"
    if min(bbox[2:]) <= 0:
        return "the box has no width or no height"
    return "" if _is_number(entry.get("score")) else "score isn't a number"


def _is_number(value: Any) -> bool:
    # Not NaN either, which Python's JSON knows.
    return type(value) in (int, float) and -1e9 < value < 1e9


def figures_of(truth: Mapping[str, Any], results: list[dict[str, Any]]) -> dict[str, float | None]:
    """The FIGURES of checked results in percent; None where `truth` has no box of the size.

    pycocotools goes through every pair of image and category, and keeps lists for each. Here each
    category has its own images alone, so that time and memory grow with the boxes; no figure
    changes, since pairs without boxes add nothing. Raises NotInstalled without pycocotools.
    """
    with optional("boxes"):
        import numpy as np
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    # It prints what it does.
    with redirect_stdout(StringIO()):
        true = COCO()
        true.dataset = dict(truth)
        true.createIndex()
        found = true.loadRes(results)
        parts = []
        for category in sorted(true.getCatIds()):
            part = COCOeval(true, found, "bbox")
            part.params.catIds = [category]
            part.params.imgIds = [*true.catToImgs[category], *found.catToImgs[category]]
            part.evaluate()
            part.accumulate()
            parts.append(part.eval)
        whole = COCOeval(true, found, "bbox")
        # (IoU, recall, category, size, boxes) and (IoU, category, size, boxes).
        for name in ("precision", "recall"):
            whole.eval[name] = np.concatenate([part[name] for part in parts], axis=-3)
        whole.summarize()
    values = zip(FIGURES, whole.stats.tolist(), strict=True)
    return {name: None if value < 0 else 100 * value for name, value in values}
