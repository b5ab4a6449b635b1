"""Asking for boxes, and storing one's own and those of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import transaction

from core.errors import Conflict, Forbidden, Invalid
from extras.boxes.coco import BoxedImage, match_names, read_coco
from extras.boxes.matching import MOST_BOXES, Box, clipped
from extras.boxes.models import BoxedQuery, BoxSet
from extras.boxes.selectors import box_problem, boxed_images, images_asked
from labeling.candidates.services import lock_query
from labeling.queries.models import Query, QueryEdit
from retrieval.corpus.models import Image

#: Bytes of an uploaded file; the commands take larger ones.
LARGEST_UPLOAD: Final = 20 * 2**20
#: How far the shapes of one image may differ, as a share of its side ratio: by rounding alone.
SAME_SHAPE: Final = 0.02


@dataclass(frozen=True, slots=True)
class BoxImport:
    """What came of a file."""

    images: int
    boxes: int
    unchanged: int
    """Images whose boxes were imported before."""
    unknown: list[str]
    """File names that are no image that gets boxes for the query."""
    refused: list[str]
    """Why images that do get boxes were left out."""


@transaction.atomic
def boxes_ask(*, query: Query, images: str, by: Any) -> None:
    """Say on which images people draw boxes for a query, of `BoxedQuery.Images` or empty for none,
    with the values before and after in its history. Boxes that are there stay.

    Raises QueryGone, and Invalid for other images.
    """
    if images not in ("", *BoxedQuery.Images.values):
        raise Invalid({"images": [f"{images!r} is none of {', '.join(BoxedQuery.Images.values)}."]})
    query = lock_query(query)
    before = images_asked(query)
    if images == before:
        return
    if images:
        BoxedQuery.objects.update_or_create(query=query, defaults={"images": images})
    else:
        BoxedQuery.objects.filter(query=query).delete()
    QueryEdit.objects.create(query=query, changes=[["boxes", before, images]], made_by=by)


@transaction.atomic
def boxes_save(
    *, query: Query, image_id: int, boxes: Sequence[Box], annotator: Any, client_id: UUID
) -> tuple[BoxSet, bool]:
    """Store all boxes of a person on an image in place of their earlier ones; no boxes say that
    none is possible. With a client id that was stored before, what was stored, and False.

    Raises QueryGone, Forbidden where the person may not draw, Conflict for an image that gets no
    boxes, and Invalid for more than MOST_BOXES or for one outside of the image.
    """
    query = lock_query(query)
    stored = BoxSet.objects.filter(annotator=annotator, client_id=client_id).first()
    if stored is not None:
        return stored, False
    if problem := box_problem(annotator, query):
        raise Forbidden(problem)
    image = boxed_images(query, [image_id]).first()
    if image is None:
        raise Conflict("This image gets no boxes: it isn't relevant, or was withdrawn.")
    if problem := _problem(boxes, image):
        raise Invalid({"boxes": [problem]})
    return _store(query, image, boxes, annotator, client_id, imported=False), True


@transaction.atomic
def boxes_import(*, query: Query, data: bytes, by: Any, category: str = "") -> BoxImport:
    """Store the boxes of a COCO file as one's own, scaled to our images where the file's are of
    another size; a second time changes nothing. They don't decide like a reviewer's own.

    Raises QueryGone, Forbidden where the person may not draw, and CocoError.
    """
    query = lock_query(query)
    if problem := box_problem(by, query):
        raise Forbidden(problem)
    there = {image.pk: image for image in boxed_images(query)}
    given = read_coco(data, category=category)
    ids = match_names(
        [one.file_name for one in given], {pk: image.file_name for pk, image in there.items()}
    )
    before = {one.image_id: one for one in query.box_sets.filter(current=True, annotator=by)}
    stored = unchanged = count = 0
    refused = []
    for one in given:
        if (pk := ids.get(one.file_name)) is None:
            continue
        image = there[pk]
        across, down = (
            image.width / (one.width or image.width),
            image.height / (one.height or image.height),
        )
        boxes = [_scaled(box, across, down) for box in one.boxes]
        if problem := _other_shape(one, image) or _problem(boxes, image):
            refused.append(f"{one.file_name}: {problem}")
        elif pk in before and before[pk].boxes == _inside(boxes, image):
            unchanged += 1
        else:
            _store(query, image, boxes, by, uuid4(), imported=True)
            stored, count = stored + 1, count + len(boxes)
    unknown = [one.file_name for one in given if one.file_name not in ids]
    return BoxImport(stored, count, unchanged, unknown, refused)


def _other_shape(given: BoxedImage, image: Image) -> str:
    """Why boxes can't be scaled to an image: the file has it in another shape, mostly as the camera
    held it, before the EXIF orientation that ours are turned by."""
    width, height = given.width or image.width, given.height or image.height
    if isclose(width * image.height, height * image.width, rel_tol=SAME_SHAPE):
        return ""
    size = f"{width:g} × {height:g} pixels in the file"
    ours = f"{image.width} × {image.height} here"
    if isclose(width * image.width, height * image.height, rel_tol=SAME_SHAPE):
        return f"It has {size} and, upright, {ours}: turn the boxes first."
    return f"It has another shape, {size} and {ours}."


def _problem(boxes: Sequence[Box], image: Image) -> str:
    if len(boxes) > MOST_BOXES:
        return f"{len(boxes)} boxes where an image has up to {MOST_BOXES}."
    if None in _inside(boxes, image):
        return "A box lies outside of the image, or is smaller than a pixel."
    return ""


def _inside(boxes: Sequence[Box], image: Image) -> list[Box | None]:
    return [clipped(box, image.width, image.height) for box in boxes]


def _scaled(box: Box, across: float, down: float) -> Box:
    x, y, width, height = box["bbox"]
    return Box(bbox=[x * across, y * down, width * across, height * down], group=box["group"])


def _store(
    query: Query, image: Image, boxes: Sequence[Box], by: Any, client_id: UUID, *, imported: bool
) -> BoxSet:
    earlier = BoxSet.objects.filter(query=query, image=image, annotator=by, current=True)
    earlier.update(current=False)
    return BoxSet.objects.create(
        query=query,
        image=image,
        annotator=by,
        client_id=client_id,
        boxes=_inside(boxes, image),
        imported=imported,
    )
