"""Images that nobody has judged, requested by reviewers and judged blindly: those that runs rank
high, and those that they picked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.db import transaction

from core.bulk import BulkOutcome
from core.errors import Conflict
from labeling.blind.items import blind_item
from labeling.candidates.services import lock_query_shared
from labeling.judging.blind import PICKED, REQUESTED
from labeling.judging.models import BlindItem, Judgment
from labeling.queries.models import Query
from retrieval.flags.selectors import ids_in_corpus, images_in_corpus


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


@transaction.atomic
def images_put_before(*, query: Query, image_ids: Collection[int], by: Any) -> BulkOutcome:
    """Have images judged for a query blindly, in its candidate list or not; what somebody has
    judged is skipped. Raises Conflict where the query isn't in a state of `PICKED.offered_in`, and
    QueryGone.
    """
    query = lock_query_shared(query)
    if query.state not in PICKED.offered_in:
        state = query.get_state_display().lower()
        raise Conflict(f"The query is {state}, so nobody judges images for it.")
    outcome = BulkOutcome()
    there = ids_in_corpus(image_ids, outcome)
    judged = Judgment.objects.filter(query=query, image__in=there)
    known = set(judged.values_list("image", flat=True))
    waiting = query.blind_items.filter(kind__in=(PICKED.name, REQUESTED.name), image__in=there)
    asked = set(waiting.values_list("image", flat=True)) - known
    outcome.skip(sorted(known), "Somebody has judged the image for this query.")
    outcome.skip(sorted(asked), "The image waits for a judgment already.")
    new = [pk for pk in there if pk not in known | asked]
    # Of two requests at once the first keeps an image.
    BlindItem.objects.bulk_create(
        [blind_item(PICKED, query=query, image_id=pk, requested_by=by) for pk in new],
        ignore_conflicts=True,
    )
    outcome.done = len(new)
    return outcome
