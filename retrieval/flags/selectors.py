"""Withdrawn and flagged images, and the images that a user may see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery

from core.access import Role, at_least
from core.bulk import BulkOutcome
from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.flags.models import ImageFlag


@dataclass(frozen=True, slots=True)
class FlagReview:
    """An image with what a reviewer needs to decide on it."""

    image: Image
    flags: list[ImageFlag]
    """Its open flags, the oldest first; of a withdrawn image those that the withdrawal upheld."""
    withdrawal: ImageWithdrawal | None
    """The withdrawal in force."""


def is_withdrawn(image: str = "pk") -> Exists:
    """A condition for querysets: the image of the field `image` is withdrawn now."""
    return Exists(ImageWithdrawal.objects.filter(image=OuterRef(image), restored_at=None))


def has_open_flag(kind: str) -> Exists:
    """A condition for querysets of images: somebody flagged it so, and nobody has decided yet."""
    opened = ImageFlag.objects.filter(state=ImageFlag.State.OPEN, kind=kind)
    return Exists(opened.filter(image=OuterRef("pk")))


def images_in_corpus() -> QuerySet[Image]:
    """Every image that isn't withdrawn."""
    return Image.objects.filter(~is_withdrawn())


def ids_in_corpus(image_ids: Iterable[int], outcome: BulkOutcome) -> list[int]:
    """Those of the ids that images of the corpus have, ascending, each once; the outcome says why
    others are skipped. Two SQL queries.
    """
    wanted = set(image_ids)
    known = set(Image.objects.filter(pk__in=wanted).values_list("pk", flat=True))
    standing = ImageWithdrawal.objects.filter(image__in=known, restored_at=None)
    gone = set(standing.values_list("image", flat=True))
    outcome.skip(sorted(wanted - known), "There is no such image.")
    outcome.skip(sorted(gone), "The image is withdrawn from the corpus.")
    return sorted(known - gone)


def images_visible_to(user: Any) -> QuerySet[Image]:
    """The images that a user may see: reviewers all, others those in the corpus, since a withdrawn
    image may hold personal data.
    """
    return Image.objects.all() if at_least(user, Role.REVIEWER) else images_in_corpus()


def image_visible_to(user: Any, pk: int) -> Image | None:
    """The image of this primary key, with `Image.ADDRESS_FIELDS` alone, if the user may see it."""
    values = {"image": pk, "all": at_least(user, Role.REVIEWER)}
    return next(iter(Image.objects.raw(_VISIBLE, values)), None)


# For each file that a page shows; Django takes longer to write the statement than all else takes.
_VISIBLE: Final = f"""
SELECT {", ".join(Image.ADDRESS_FIELDS)} FROM {Image._meta.db_table} image
 WHERE id = %(image)s
   AND (%(all)s OR NOT EXISTS (SELECT FROM {ImageWithdrawal._meta.db_table} withdrawal
                                WHERE withdrawal.image_id = image.id AND restored_at IS NULL))
"""


def open_flags(image: Image) -> QuerySet[ImageFlag]:
    """An image's open flags, the oldest first, with their authors."""
    return (
        ImageFlag.objects.filter(image=image, state=ImageFlag.State.OPEN)
        .select_related("raised_by")
        .order_by("pk")
    )


def flagged_images() -> QuerySet[Image]:
    """The images with open flags; the one that was flagged last comes first."""
    opened = ImageFlag.objects.filter(image=OuterRef("pk"), state=ImageFlag.State.OPEN)
    return (
        Image.objects.filter(Exists(opened))
        .annotate(last_flag=Subquery(opened.order_by("-pk").values("pk")[:1]))
        .order_by("-last_flag")
    )


def flagged_image_count() -> int:
    """How many images have open flags; read from a small index."""
    opened = ImageFlag.objects.filter(state=ImageFlag.State.OPEN).order_by()
    return opened.values("image").distinct().count()


def withdrawn_images() -> QuerySet[Image]:
    """The images that are withdrawn now and can be restored; the one that was withdrawn last comes
    first.
    """
    standing = ImageWithdrawal.objects.filter(image=OuterRef("pk"), restored_at=None)
    return (
        Image.objects.filter(Exists(standing), takedown=None)
        .annotate(withdrawal=Subquery(standing.values("pk")[:1]))
        .order_by("-withdrawal")
    )


def flag_reviews(images: Iterable[Image]) -> list[FlagReview]:
    """Return what a reviewer sees of these images, in their order. Four SQL queries."""
    ids = [image.pk for image in images]
    known = Image.objects.select_related("species").prefetch_related("species__names").in_bulk(ids)
    standing = {
        withdrawal.image_id: withdrawal
        for withdrawal in ImageWithdrawal.objects.filter(
            image__in=ids, restored_at=None
        ).select_related("withdrawn_by")
    }
    upheld = Q(
        state=ImageFlag.State.UPHELD,
        image__withdrawals__restored_at=None,
        decided_at=F("image__withdrawals__withdrawn_at"),
    )
    flags: defaultdict[int, list[ImageFlag]] = defaultdict(list)
    for flag in (
        ImageFlag.objects.filter(Q(state=ImageFlag.State.OPEN) | upheld, image__in=ids)
        .select_related("raised_by")
        .order_by("pk")
        .distinct()
    ):
        flags[flag.image_id].append(flag)
    return [FlagReview(known[pk], flags[pk], standing.get(pk)) for pk in ids if pk in known]
