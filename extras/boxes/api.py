"""The API of boxes."""

from __future__ import annotations

from typing import Final

from django.core.exceptions import PermissionDenied
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access import Role, require_role
from core.api.parameters import parameters, validated
from extras.boxes.selectors import BoxWork, box_problem
from extras.boxes.serializers import (
    BoxedQuerySerializer,
    BoxParameters,
    BoxSetSerializer,
    BoxSetWriteSerializer,
    BoxTasksSerializer,
)
from extras.boxes.services import boxes_ask, boxes_save
from labeling.judging.access import get_query_for

#: Images in an answer.
TASKS_GIVEN: Final = 100


class QueryBoxesView(APIView):
    """Boxes on one query's relevant images."""

    @extend_schema(parameters=[BoxParameters], responses=BoxTasksSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Read which relevant images of a complete query are to be boxed."""
        query = get_query_for(request.user, pk)
        kind = parameters(request, BoxParameters)["kind"]
        if kind == "disputed":
            require_role(request.user, Role.REVIEWER)
        if problem := box_problem(request.user, query):
            raise PermissionDenied(problem)
        count, tasks = BoxWork(query).tasks(request.user, kind, first=TASKS_GIVEN)
        return Response(BoxTasksSerializer({"count": count, "results": tasks}).data)

    @extend_schema(
        request=BoxSetWriteSerializer,
        responses={
            201: BoxSetSerializer,
            200: OpenApiResponse(BoxSetSerializer, "the client id was stored before"),
        },
    )
    def post(self, request: Request, pk: int) -> Response:
        """Store one's boxes on an image."""
        query = get_query_for(request.user, pk)
        sent = validated(request, BoxSetWriteSerializer)
        stored, new = boxes_save(
            query=query, image_id=sent.pop("image"), annotator=request.user, **sent
        )
        code = status.HTTP_201_CREATED if new else status.HTTP_200_OK
        return Response(BoxSetSerializer(stored).data, status=code)

    @extend_schema(request=BoxedQuerySerializer, responses=BoxedQuerySerializer)
    def put(self, request: Request, pk: int) -> Response:
        """Say on which images people draw boxes (admins)."""
        query = get_query_for(request.user, pk)
        require_role(request.user, Role.ADMIN)
        sent = validated(request, BoxedQuerySerializer)
        boxes_ask(query=query, images=sent["images"], by=request.user)
        return Response(sent)
