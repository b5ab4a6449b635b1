"""Flags on images, and what reviewers decide of them: withdrawn from the corpus, or cleared.

Everything here may be sent twice or at once by several people and counts once: the image's row is
locked first, so that a flag is either before a decision or after it.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import QuerySet

from core.locks import lock_key, transaction_lock
from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.flags.models import ImageFlag

LONGEST_NOTE: Final = 1000


class FlagRefused(Exception):
    """The request doesn't fit the state of the image or flag; the text says why, for people."""


@transaction.atomic
def image_flag_raise(*, image: Image, kind: str, note: str = "", by: Any) -> tuple[ImageFlag, bool]:
    """Flag an image; tells whether the flag is new.

    A person's open flag of that kind is returned again, with the note if another one is given.
    Raises FlagRefused for a withdrawn image and Image.DoesNotExist for one that was deleted.
    """
    _image_lock(image)
    if ImageWithdrawal.objects.filter(image=image, restored_at=None).exists():
        raise FlagRefused("The image was withdrawn from the corpus already.")
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
def image_flag_retract(*, flag: ImageFlag, by: Any) -> bool:
    """Take one's own open flag back; tells whether it was still there.

    Raises FlagRefused for somebody else's flag and for one that a reviewer has decided.
    """
    found = ImageFlag.objects.select_for_update().filter(pk=flag.pk).first()
    if found is None:
        return False
    if found.raised_by_id != by.pk:
        raise FlagRefused("Only who raised a flag can take it back.")
    if found.state != ImageFlag.State.OPEN:
        raise FlagRefused("A reviewer has decided about this flag already.")
    found.delete()
    return True


@transaction.atomic
def image_withdraw(*, image: Image, by: Any, note: str = "") -> ImageWithdrawal:
    """Take an image out of the corpus and uphold its open flags; a standing withdrawal is
    returned as it is.

    Search, new lists and new releases leave it out from this moment; lists that are frozen keep its
    row and its judgments stay. Raises Image.DoesNotExist for an image that was deleted.
    """
    transaction_lock(_LOCK, shared=True)
    _image_lock(image)
    standing = ImageWithdrawal.objects.filter(image=image, restored_at=None).first()
    if standing is not None:
        return standing
    moment = _now()
    _open_flags(image).update(state=ImageFlag.State.UPHELD, decided_by=by, decided_at=moment)
    return ImageWithdrawal.objects.create(
        image=image, note=note, withdrawn_by=by, withdrawn_at=moment
    )


@transaction.atomic
def image_restore(*, image: Image, by: Any, reopen: bool = False) -> bool:
    """Bring a withdrawn image back into the corpus; tells whether it was withdrawn.

    Its flags stay decided, unless `reopen` asks for those that the withdrawal upheld: then all is
    as before it. Raises Image.DoesNotExist for an image that was deleted.
    """
    transaction_lock(_LOCK, shared=True)
    _image_lock(image)
    standing = ImageWithdrawal.objects.filter(image=image, restored_at=None).first()
    if standing is None:
        return False
    standing.restored_by = by
    # The server's clock may have been set back meanwhile.
    standing.restored_at = max(_now(), standing.withdrawn_at)
    standing.save(update_fields=["restored_by", "restored_at"])
    if reopen:
        _reopen(
            ImageFlag.objects.filter(
                image=image, state=ImageFlag.State.UPHELD, decided_at=standing.withdrawn_at
            )
        )
    return True


@transaction.atomic
def image_flags_clear(*, image: Image, by: Any, flags: Collection[int] | None = None) -> list[int]:
    """Close an image's open flags as unfounded; returns the ids of those that it closed.

    `flags`: the ids that the reviewer has seen, so that one raised meanwhile stays open; by default
    all. Raises Image.DoesNotExist for an image that was deleted.
    """
    _image_lock(image)
    meant = _open_flags(image)
    if flags is not None:
        meant = meant.filter(pk__in=flags)
    cleared = list(meant.values_list("pk", flat=True))
    ImageFlag.objects.filter(pk__in=cleared).update(
        state=ImageFlag.State.CLEARED, decided_by=by, decided_at=_now()
    )
    return cleared


@transaction.atomic
def image_flags_reopen(*, image: Image, flags: Collection[int]) -> int:
    """Undo a clearing: open these cleared flags of the image again; returns how many.

    Raises FlagRefused for an image that is withdrawn and Image.DoesNotExist for a deleted one.
    """
    _image_lock(image)
    if ImageWithdrawal.objects.filter(image=image, restored_at=None).exists():
        raise FlagRefused("The image was withdrawn from the corpus meanwhile.")
    return _reopen(
        ImageFlag.objects.filter(image=image, state=ImageFlag.State.CLEARED, pk__in=flags)
    )


def withdrawals_freeze() -> None:
    """Hold back withdrawals and restorations until the current transaction ends.

    Each of them holds this lock shared until it is committed and takes its moment under it; so
    whatever was withdrawn or restored by a moment that is taken after this call is committed, and
    whatever follows has a later moment. Call it in a short transaction.
    """
    transaction_lock(_LOCK)


_LOCK: Final = lock_key("withdrawals")


def _image_lock(image: Image) -> None:
    """Lock the image's row; judgments and embeddings may go on referring to it."""
    Image.objects.select_for_update(no_key=True, of=("self",)).only("pk").get(pk=image.pk)


def _open_flags(image: Image) -> QuerySet[ImageFlag]:
    return ImageFlag.objects.filter(image=image, state=ImageFlag.State.OPEN).order_by("pk")


def _reopen(flags: QuerySet[ImageFlag]) -> int:
    """Open decided flags, but not beside an open one of the same kind and person."""
    opened = 0
    for flag in flags.order_by("-pk"):
        same = {"image": flag.image_id, "kind": flag.kind, "raised_by": flag.raised_by_id}
        if not ImageFlag.objects.filter(state=ImageFlag.State.OPEN, **same).exists():
            flag.state, flag.decided_by, flag.decided_at = ImageFlag.State.OPEN, None, None
            flag.save(update_fields=["state", "decided_by", "decided_at"])
            opened += 1
    return opened


def _now() -> datetime:
    """The database's clock, as a list's freezing moment is taken."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment
