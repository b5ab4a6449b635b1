"""The order that learns in the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.errors import Forbidden
from labeling.judging.access import get_query_for, require_permission
from labeling.learning.revisions import orders_open_to, revision_queue
from labeling.queries.models import Query


class QueuedSerializer(serializers.Serializer[Any]):
    """An image of a queue."""

    image = serializers.IntegerField(source="image_id", help_text="its id")
    rank = serializers.IntegerField(help_text="in the frozen list")
    learned = serializers.BooleanField(
        help_text="whether it comes from the learned order: its source is then learned, else list"
    )


class RevisionQueueSerializer(serializers.Serializer[Any]):
    """A revision and the first images that the user hasn't judged, in its order."""

    id = serializers.IntegerField(
        source="revision.pk", help_text="judgments made in this queue carry it"
    )
    number = serializers.IntegerField(source="revision.number", help_text="in the list, from 1")
    list = serializers.IntegerField(source="revision.candidate_list_id")
    last_event = serializers.IntegerField(
        source="revision.last_event", help_text="the judgment event up to which it learned"
    )
    judged = serializers.IntegerField(
        source="revision.judged", help_text="images that it learned from"
    )
    relevant = serializers.IntegerField(
        source="revision.relevant", help_text="the relevant ones of them"
    )
    queue = QueuedSerializer(source="images", many=True)
    left_out = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="ranks of images that don't come up in this order; audits draw them too",
    )


class LearningActions:
    """The order that learns of one query; part of the queries' view set."""

    @extend_schema(
        request=None,
        responses={
            200: RevisionQueueSerializer,
            409: OpenApiResponse(description="there is no list to order yet"),
        },
    )
    @action(detail=True, methods=["post"])
    def revisions(self, request: Request, pk: int) -> Response:
        """The revision for the present judgments, with its queue (for people who may judge in this
        order).

        It is made if there is none yet; asking again changes nothing.
        """
        query = get_query_for(request.user, pk)
        require_permission(request.user, query)
        if Query.Order.LEARNED not in orders_open_to(request.user, query):
            raise Forbidden("This query is labeled in the CLIP order.")
        queue = revision_queue(query=query, user=request.user)
        return Response(RevisionQueueSerializer(queue).data)
