"""The order that learns in the API."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from labeling.judging.access import get_query_for, judging_problem
from labeling.learning.choice import orders_open_to
from labeling.learning.revisions import revision_queue
from labeling.learning.serializers import RevisionQueueSerializer
from labeling.queries.models import Query


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
        """The revision for the judgments that stand, with its queue (who may judge in this order).

        It is made where it isn't there yet; asking again changes nothing.
        """
        query = get_query_for(request.user, pk)
        if problem := judging_problem(request.user, query):
            raise PermissionDenied(problem)
        if Query.Order.LEARNED not in orders_open_to(request.user, query):
            raise PermissionDenied("This query is labeled in the CLIP order.")
        found = revision_queue(query=query, user=request.user)
        return Response(RevisionQueueSerializer(found).data)
