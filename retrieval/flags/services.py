"""Flags on images and reviewers' decisions on them: the image is withdrawn, or the flag cleared.

Each call may be repeated, or made by several people at once, and counts once: it locks the image's
row first, so that a flag is either before a decision or after it.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import QuerySet

from core.bulk import BulkOutcome
from core.errors import Conflict
from core.locks import lock_key, transaction_lock
from retrieval.corpus.models import Image, ImageTakedown, ImageWithdrawal
from retrieval.corpus.shown import shown_files_remove
from retrieval.flags.models import ImageFlag
from retrieval.flags.selectors import ids_in_corpus

LONGEST_NOTE: Final = 1000


class FlagRefused(Conflict):
    """The request doesn't fit the state of the image or flag; the message is for people."""


@transaction.atomic
def image_flag_raise(*, image: Image, kind: str, note: str = "", by: Any) -> tuple[ImageFlag, bool]:
    """Flag an image; returns the flag and whether it is new.

    An open flag of the person of that kind is returned, with the new note if there is one.
    Raises FlagRefused for a withdrawn image and Image.DoesNotExist for a deleted one.
    """
    _image_lock(image)
    if ImageWithdrawal.objects.filter(image=image, restored_at=None).exists():
        raise FlagRefused("The image has already been withdrawn from the corpus.")
    flag, new = ImageFlag.objects.get_or_create(
        image=image,
        kind=kind,
        raised_by=by,
        state=ImageFlag.State.OPEN,
        defaults={"note": note},
    )
    if note and flag.note != note:
        flag.note = note
        flag.save(update_fields=["note"])
    return flag, new


@transaction.atomic
def images_flag_raise(
    *, image_ids: Collection[int], kind: str, note: str = "", by: Any
) -> BulkOutcome:
    """Flag images as `image_flag_raise` does one, in a few statements for all."""
    _images_lock(image_ids)
    outcome = BulkOutcome()
    there = ids_in_corpus(image_ids, outcome)
    own = ImageFlag.objects.filter(
        image__in=there, kind=kind, raised_by=by, state=ImageFlag.State.OPEN
    )
    flagged = dict(own.values_list("image", "note"))
    same = {pk for pk, before in flagged.items() if note in ("", before)}
    outcome.skip(sorted(same), "You have flagged the image so already.")
    own.exclude(image__in=same).update(note=note)
    ImageFlag.objects.bulk_create(
        ImageFlag(image_id=pk, kind=kind, note=note, raised_by=by)
        for pk in there
        if pk not in flagged
    )
    outcome.done = len(there) - len(same)
    return outcome


@transaction.atomic
def image_flag_retract(*, flag: ImageFlag, by: Any) -> bool:
    """Delete an open flag of `by`; returns whether it still existed.

    Raises FlagRefused for another person's flag and for one that a reviewer has decided on.
    """
    stored = ImageFlag.objects.select_for_update().filter(pk=flag.pk).first()
    if stored is None:
        return False
    if stored.raised_by_id != by.pk:
        raise FlagRefused("Only the person who raised a flag can retract it.")
    if stored.state != ImageFlag.State.OPEN:
        raise FlagRefused("A reviewer has already decided on this flag.")
    stored.delete()
    return True


def image_withdraw(*, image: Image, by: Any, note: str = "") -> ImageWithdrawal:
    """Withdraw an image as `images_withdraw` does; returns the withdrawal, which may be an earlier
    one that is in force. Raises Image.DoesNotExist for a deleted image.
    """
    images_withdraw(image_ids=[image.pk], by=by, note=note)
    withdrawal = ImageWithdrawal.objects.filter(image=image, restored_at=None).first()
    if withdrawal is None:
        raise Image.DoesNotExist(f"There is no image {image.pk}.")
    return withdrawal


@transaction.atomic
def images_withdraw(*, image_ids: Collection[int], by: Any, note: str = "") -> BulkOutcome:
    """Withdraw images from the corpus and uphold their open flags, in a few statements for all.

    Search, new lists and new releases leave them out from this moment; frozen lists keep their
    rows, and their judgments stay. The files by which signed addresses showed them are deleted.
    """
    transaction_lock(_LOCK, shared=True)
    _images_lock(image_ids)
    outcome = BulkOutcome()
    new = ids_in_corpus(image_ids, outcome)
    shown_files_remove(new)
    moment = _now()
    ImageFlag.objects.filter(image__in=new, state=ImageFlag.State.OPEN).update(
        state=ImageFlag.State.UPHELD, decided_by=by, decided_at=moment
    )
    ImageWithdrawal.objects.bulk_create(
        ImageWithdrawal(image_id=pk, note=note, withdrawn_by=by, withdrawn_at=moment) for pk in new
    )
    outcome.done = len(new)
    return outcome


@transaction.atomic
def image_restore(*, image: Image, by: Any, reopen: bool = False) -> bool:
    """Restore a withdrawn image to the corpus; returns whether it was withdrawn.

    With `reopen` the flags that the withdrawal upheld are open again, else they stay decided.
    Raises FlagRefused for an image that was taken down, and Image.DoesNotExist for a deleted one.
    """
    transaction_lock(_LOCK, shared=True)
    _image_lock(image)
    withdrawal = ImageWithdrawal.objects.filter(image=image, restored_at=None).first()
    if withdrawal is None:
        return False
    if ImageTakedown.objects.filter(image=image).exists():
        raise FlagRefused("The image was taken down for good; its file is gone.")
    withdrawal.restored_by = by
    # The server's clock may have been set back.
    withdrawal.restored_at = max(_now(), withdrawal.withdrawn_at)
    withdrawal.save(update_fields=["restored_by", "restored_at"])
    if reopen:
        _reopen(
            ImageFlag.objects.filter(
                image=image, state=ImageFlag.State.UPHELD, decided_at=withdrawal.withdrawn_at
            )
        )
    return True


@transaction.atomic
def image_flags_clear(*, image: Image, by: Any, flags: Collection[int] | None = None) -> list[int]:
    """Close open flags of an image as unfounded; returns the ids of the closed flags.

    `flags` are the ids that the reviewer has seen, so that a later flag stays open; by default all.
    Raises Image.DoesNotExist for a deleted image.
    """
    _image_lock(image)
    open_flags = _open_flags(image)
    if flags is not None:
        open_flags = open_flags.filter(pk__in=flags)
    cleared = list(open_flags.values_list("pk", flat=True))
    ImageFlag.objects.filter(pk__in=cleared).update(
        state=ImageFlag.State.CLEARED, decided_by=by, decided_at=_now()
    )
    return cleared


@transaction.atomic
def image_flags_reopen(*, image: Image, flags: Collection[int]) -> int:
    """Reopen cleared flags of an image; returns how many.

    Raises FlagRefused for a withdrawn image and Image.DoesNotExist for a deleted one.
    """
    _image_lock(image)
    if ImageWithdrawal.objects.filter(image=image, restored_at=None).exists():
        raise FlagRefused("The image has been withdrawn from the corpus.")
    return _reopen(
        ImageFlag.objects.filter(image=image, state=ImageFlag.State.CLEARED, pk__in=flags)
    )


def withdrawals_freeze() -> None:
    """Block withdrawals and restorations until the current transaction ends.

    Each of them takes its timestamp under this lock and holds it shared until it is committed. So
    all with a timestamp before one taken after this call are committed, and the others get a later
    timestamp. Call it in a short transaction.
    """
    transaction_lock(_LOCK)


_LOCK: Final = lock_key("withdrawals")


def _image_lock(image: Image) -> None:
    """Lock the image's row, but not against new judgments and embeddings that refer to it."""
    Image.objects.select_for_update(no_key=True, of=("self",)).only("pk").get(pk=image.pk)


def _images_lock(image_ids: Collection[int]) -> None:
    """Lock the images' rows, as `_image_lock` does one, in the order of their ids."""
    rows = Image.objects.select_for_update(no_key=True, of=("self",)).filter(pk__in=image_ids)
    list(rows.order_by("pk").values_list("pk"))


def _open_flags(image: Image) -> QuerySet[ImageFlag]:
    return ImageFlag.objects.filter(image=image, state=ImageFlag.State.OPEN).order_by("pk")


def _reopen(flags: QuerySet[ImageFlag]) -> int:
    """Reopen decided flags, except beside an open one of the same kind and person."""
    opened = 0
    for flag in flags.order_by("-pk"):
        same = {"image": flag.image_id, "kind": flag.kind, "raised_by": flag.raised_by_id}
        if not ImageFlag.objects.filter(state=ImageFlag.State.OPEN, **same).exists():
            flag.state, flag.decided_by, flag.decided_at = ImageFlag.State.OPEN, None, None
            flag.save(update_fields=["state", "decided_by", "decided_at"])
            opened += 1
    return opened


def _now() -> datetime:
    """Return the database's time, by which the freezing of lists is also dated."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment
