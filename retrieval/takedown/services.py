"""Takedowns: images that must leave for good, with all that was made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.db import transaction
from django.dispatch import Signal

from core.errors import Invalid
from retrieval.corpus.models import Image, ImageTakedown
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.flags.services import images_withdraw
from retrieval.images.files import ImageRef, copies_remove
from retrieval.ranking.matrices import matrix_rebuild

LONGEST_REASON: Final = 1000
NO_FILE: Final = "0" * 64
"""The SHA-256 in the row of an image that was taken down, which is that of no file."""

images_taken_down = Signal()
"""Sent in the transaction of a takedown, with `image_ids` and `by`."""


@transaction.atomic
def image_take_down(*, image: Image, reason: str, by: Any) -> list[int]:
    """Remove an image for good, and every other whose file has the same bytes; returns the ids of
    those that were removed now.

    Their files, thumbnails and embeddings go, and search, lists and new releases leave them out at
    once; matrices are packed anew, and made releases lose the bytes by a job. The rows stay, as
    tombstones. A file at a root isn't ours: it stays there, and nothing reads it any more. Raises
    Invalid for a blank or too long reason, Image.DoesNotExist for a deleted image.
    """
    reason = reason.strip()
    if not 0 < len(reason) <= LONGEST_REASON:
        raise Invalid({"reason": [f"Give a reason of at most {LONGEST_REASON} characters."]})
    image = Image.objects.get(pk=image.pk)
    same = Image.objects.filter(pk=image.pk)
    if image.sha256:
        same |= Image.objects.filter(sha256=image.sha256)
    removed = list(
        same.filter(takedown=None).order_by("pk").select_for_update(no_key=True, of=("self",))
    )
    images_withdraw(image_ids=[image_row.pk for image_row in removed], by=by, note=reason)
    ImageTakedown.objects.bulk_create(
        ImageTakedown(image=image_row, sha256=image_row.sha256, reason=reason, taken_down_by=by)
        for image_row in removed
    )
    ids = [image_row.pk for image_row in removed]
    # First the rows: an embedding job that has read a file stores nothing for a changed row.
    Image.objects.filter(pk__in=ids).update(
        root=None,
        sha256=NO_FILE,
        rights_holder="",
        observed_at=None,
        latitude=None,
        longitude=None,
        location_uncertainty=None,
        elevation=None,
        observer="",
        license_text="",
        folder="",
        custom_fields={},
    )
    Embedding.objects.filter(image_id__in=ids).delete()
    files = [ImageRef.of(image_row) for image_row in removed]
    transaction.on_commit(lambda: _copies_remove(files), robust=True)
    if removed:
        for model in EmbeddingModel.objects.order_by("pk"):
            matrix_rebuild(model=model, created_by=by)
        images_taken_down.send(sender=None, image_ids=ids, by=by)
    return ids


def _copies_remove(files: Iterable[ImageRef]) -> None:
    for ref in files:
        copies_remove(ref)


def removed_files_delete() -> None:
    """Delete again the copied files of all takedowns, for one that was cut short."""
    for sha256 in ImageTakedown.objects.exclude(sha256="").values_list("sha256", flat=True):
        copies_remove(ImageRef(sha256, None, ""))
