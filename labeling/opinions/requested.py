"""Images that runs rank high and nobody has judged: requested by reviewers, judged blindly."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import SystemRandom
from typing import Any, Final

from django.db import transaction
from django.db.models import Exists, QuerySet

from core.errors import Forbidden
from labeling.audits.release_selectors import BlindQueue, blind_queue, queries_with, votes_on_it
from labeling.audits.release_services import PLACES, display_first
from labeling.audits.services import check_count
from labeling.candidates.services import lock_query
from labeling.judging.access import REQUESTED_STATES, requested_problem
from labeling.judging.models import Judgment
from labeling.opinions.models import RequestedImage
from labeling.queries.models import Query
from retrieval.flags.selectors import images_in_corpus, is_withdrawn

_RANDOM: Final = SystemRandom()


def requested_waiting() -> QuerySet[RequestedImage]:
    """What runs request and nobody has judged, without withdrawn images; of any query, in any
    state.
    """
    return RequestedImage.objects.filter(~Exists(votes_on_it()), ~is_withdrawn("image"))


def requested_queue(query: Query, user: Any) -> BlindQueue:
    """The person's queue of one query; two SQL queries."""
    waiting = requested_waiting().filter(query=query)
    return blind_queue(user, waiting=waiting, offered=query.requested_images.all())


def queries_with_requested(user: Any) -> list[tuple[Query, int]]:
    """The queries in which requested images wait for anybody, by query id, with how many images;
    two SQL queries.
    """
    return queries_with(user, requested_waiting(), REQUESTED_STATES)


@transaction.atomic
def requested_show(*, query: Query, annotator: Any, count: int) -> BlindQueue:
    """Display requested images to a person to judge, until `count` wait.

    Raises QueryGone, Forbidden where the person may not judge, ValueError as `check_count`.
    """
    check_count(count)
    query = lock_query(query)
    if problem := requested_problem(annotator, query):
        raise Forbidden(problem)
    display_first(requested_waiting().filter(query=query), count)
    return requested_queue(query, annotator)


@transaction.atomic
def images_request(
    *, wanted: Mapping[int, Collection[int]], requested_for: str, by: Any
) -> list[tuple[int, int]]:
    """Have images judged: `wanted` names image ids by the primary key of a query in one of
    REQUESTED_STATES. The new (query, image id); what is judged, withdrawn or requested already
    isn't among them.
    """
    images = {image_id for ids in wanted.values() for image_id in ids}
    queries = Query.objects.filter(pk__in=wanted, state__in=REQUESTED_STATES)
    open_to = set(queries.values_list("pk", flat=True))
    there = set(images_in_corpus().filter(pk__in=images).values_list("pk", flat=True))
    known = {
        pair
        for model in (Judgment, RequestedImage)
        for pair in model.objects.filter(query__in=open_to, image__in=images)
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
    RequestedImage.objects.bulk_create(
        [
            RequestedImage(
                query_id=query,
                image_id=image_id,
                requested_for=requested_for[:300],
                requested_by=by,
                place=_RANDOM.randrange(PLACES),
            )
            for query, image_id in new
        ],
        ignore_conflicts=True,
    )
    return new
