"""Images that runs rank high and nobody has judged: requested by reviewers, judged blindly."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db import transaction

from labeling.blind.items import blind_item
from labeling.judging.blind import REQUESTED
from labeling.judging.models import BlindItem, Judgment
from labeling.queries.models import Query
from retrieval.flags.selectors import images_in_corpus


@transaction.atomic
def images_request(
    *, wanted: Mapping[int, Collection[int]], requested_for: str, by: Any
) -> list[tuple[int, int]]:
    """Have images judged: `wanted` names image ids by the primary key of a query in one of
    `REQUESTED.offered_in`. The new (query, image id); what is judged, withdrawn or requested
    already isn't among them.
    """
    images = {image_id for ids in wanted.values() for image_id in ids}
    queries = Query.objects.filter(pk__in=wanted, state__in=REQUESTED.offered_in)
    open_to = set(queries.values_list("pk", flat=True))
    there = set(images_in_corpus().filter(pk__in=images).values_list("pk", flat=True))
    requested = BlindItem.objects.filter(kind=REQUESTED.name)
    known = {
        pair
        for rows in (Judgment.objects, requested)
        for pair in rows.filter(query__in=open_to, image__in=images)
        .order_by()
        .values_list("query", "image")
    }
    new = [
        (query, image_id)
        for query, ids in wanted.items()
        for image_id in ids
        if query in open_to and image_id in there and (query, image_id) not in known
    ]
    # Of two requests at once the first keeps an image.
    BlindItem.objects.bulk_create(
        [
            blind_item(
                REQUESTED,
                query_id=query,
                image_id=image_id,
                requested_for=requested_for[:300],
                requested_by=by,
            )
            for query, image_id in new
        ],
        ignore_conflicts=True,
    )
    return new
