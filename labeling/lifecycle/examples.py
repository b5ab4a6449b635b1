"""Images that admins pin to a query's guidelines."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from core.bulk import BulkOutcome
from core.errors import Conflict
from labeling.candidates.services import lock_query
from labeling.queries.models import Query, QueryExample
from retrieval.corpus.models import Image
from retrieval.flags.selectors import ids_in_corpus, is_withdrawn

MOST_PINNED = 40


@transaction.atomic
def example_pin(
    *, query: Query, image_id: int, relevant: bool, note: str = "", by: Any
) -> tuple[QueryExample, bool]:
    """Pin an image as relevant or not relevant, or change its example; returns the example and
    whether it is new.

    Raises ValidationError for an unknown image, Conflict for a withdrawn one and where
    MOST_PINNED are pinned already, and QueryGone.
    """
    query = lock_query(query)
    image = Image.objects.filter(pk=image_id).annotate(withdrawn=is_withdrawn()).first()
    if image is None:
        raise ValidationError({"image": f"There is no image {image_id}."})
    if image.withdrawn:
        raise Conflict("The image was withdrawn from the corpus, so it can't be an example.")
    fields = {"relevant": relevant, "note": note}
    example = QueryExample.objects.filter(query=query, image=image).first()
    if example is not None:
        QueryExample.objects.filter(pk=example.pk).update(**fields)
        example.relevant, example.note = relevant, note
        example.image = image
        return example, False
    if QueryExample.objects.filter(query=query).count() >= MOST_PINNED:
        raise Conflict(f"{MOST_PINNED} examples are pinned already; remove one first.")
    return QueryExample.objects.create(query=query, image=image, pinned_by=by, **fields), True


@transaction.atomic
def examples_pin(
    *, query: Query, image_ids: Collection[int], relevant: bool, note: str = "", by: Any
) -> BulkOutcome:
    """Pin images as `example_pin` does one, in a few statements for all; those beyond MOST_PINNED
    are skipped, the highest ids. Raises QueryGone.
    """
    query = lock_query(query)
    outcome = BulkOutcome()
    there = ids_in_corpus(image_ids, outcome)
    known = {one.image_id: one for one in QueryExample.objects.filter(query=query)}
    fields = {"relevant": relevant, "note": note}
    same = {pk for pk, one in known.items() if (one.relevant, one.note) == (relevant, note)}
    outcome.skip((pk for pk in there if pk in same), "The image is such an example already.")
    changed = [pk for pk in there if pk in known and pk not in same]
    QueryExample.objects.filter(query=query, image__in=changed).update(**fields)
    new = [pk for pk in there if pk not in known]
    room = max(MOST_PINNED - len(known), 0)
    outcome.skip(new[room:], f"{MOST_PINNED} examples are pinned already; remove one first.")
    QueryExample.objects.bulk_create(
        QueryExample(query=query, image_id=pk, pinned_by=by, **fields) for pk in new[:room]
    )
    outcome.done = len(changed) + len(new[:room])
    return outcome


def example_unpin(*, query: Query, image_id: int) -> bool:
    """Remove an example; returns whether there was one."""
    removed, _ = QueryExample.objects.filter(query=query, image=image_id).delete()
    return bool(removed)


def pinned_examples(query: Query) -> list[QueryExample]:
    """Relevant examples first, in the order of pinning; without withdrawn images."""
    return list(
        QueryExample.objects.filter(~is_withdrawn("image_id"), query=query)
        .select_related("image")
        .order_by("-relevant", "pk")
    )
