"""Which images are withdrawn or flagged, and who may see what of that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery

from core.access import Role, at_least
from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.flags.models import ImageFlag


@dataclass(frozen=True, slots=True)
class FlagReview:
    """An image as a reviewer decides about it."""

    image: Image
    flags: list[ImageFlag]
    """Its open flags, the oldest first; of a withdrawn image those that the withdrawal upheld."""
    withdrawal: ImageWithdrawal | None
    """The withdrawal that stands."""


def is_withdrawn(image: str = "pk") -> Exists:
    """A condition for queries: the image that the field `image` refers to is withdrawn now."""
    return Exists(ImageWithdrawal.objects.filter(image=OuterRef(image), restored_at=None))


def images_in_corpus() -> QuerySet[Image]:
    """Every image that isn't withdrawn."""
    return Image.objects.filter(~is_withdrawn())


def images_visible_to(user: Any) -> QuerySet[Image]:
    """The images that a user may look at: reviewers all, others those in the corpus, since a
    withdrawn picture may hold personal data.
    """
    return Image.objects.all() if at_least(user, Role.REVIEWER) else images_in_corpus()


def open_flags(image: Image) -> QuerySet[ImageFlag]:
    """An image's open flags, the oldest first, with who raised them."""
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
    """How many images have open flags: one look at a small index."""
    opened = ImageFlag.objects.filter(state=ImageFlag.State.OPEN).order_by()
    return opened.values("image").distinct().count()


def withdrawn_images() -> QuerySet[Image]:
    """The images that are withdrawn now; the one that was withdrawn last comes first."""
    standing = ImageWithdrawal.objects.filter(image=OuterRef("pk"), restored_at=None)
    return (
        Image.objects.filter(Exists(standing))
        .annotate(withdrawal=Subquery(standing.values("pk")[:1]))
        .order_by("-withdrawal")
    )


def flag_reviews(images: Iterable[Image]) -> list[FlagReview]:
    """What a reviewer sees of these images, in their order. Four SQL queries."""
    wanted = [image.pk for image in images]
    known = (
        Image.objects.select_related("species").prefetch_related("species__names").in_bulk(wanted)
    )
    standing = {
        one.image_id: one
        for one in ImageWithdrawal.objects.filter(
            image__in=wanted, restored_at=None
        ).select_related("withdrawn_by")
    }
    upheld = Q(
        state=ImageFlag.State.UPHELD,
        image__withdrawals__restored_at=None,
        decided_at=F("image__withdrawals__withdrawn_at"),
    )
    flags: defaultdict[int, list[ImageFlag]] = defaultdict(list)
    for flag in (
        ImageFlag.objects.filter(Q(state=ImageFlag.State.OPEN) | upheld, image__in=wanted)
        .select_related("raised_by")
        .order_by("pk")
        .distinct()
    ):
        flags[flag.image_id].append(flag)
    return [FlagReview(known[pk], flags[pk], standing.get(pk)) for pk in wanted if pk in known]
