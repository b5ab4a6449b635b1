"""The API of boxes."""

from __future__ import annotations

from typing import Final

from django.core.exceptions import PermissionDenied
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.access import Role, require_role
from core.api.parameters import parameters, validated
from labeling.boxes.selectors import BoxWork, box_problem
from labeling.boxes.serializers import (
    BoxParameters,
    BoxSetSerializer,
    BoxSetWriteSerializer,
    BoxTasksSerializer,
)
from labeling.boxes.services import boxes_save
from labeling.judging.access import get_query_for

#: Images in an answer.
TASKS_GIVEN: Final = 100


class BoxActions:
    """Boxes on one query's relevant images; part of the queries' view set."""

    @extend_schema(methods=["get"], parameters=[BoxParameters], responses=BoxTasksSerializer)
    @extend_schema(
        methods=["post"],
        request=BoxSetWriteSerializer,
        responses={
            201: BoxSetSerializer,
            200: OpenApiResponse(BoxSetSerializer, "the client id was stored before"),
        },
    )
    @action(detail=True, methods=["get", "post"])
    def boxes(self, request: Request, pk: int) -> Response:
        """Read which relevant images of a complete query are to be boxed, or store one's boxes."""
        query = get_query_for(request.user, pk)
        if request.method == "POST":
            sent = validated(request, BoxSetWriteSerializer)
            stored, new = boxes_save(
                query=query, image_id=sent.pop("image"), annotator=request.user, **sent
            )
            code = status.HTTP_201_CREATED if new else status.HTTP_200_OK
            return Response(BoxSetSerializer(stored).data, status=code)
        kind = parameters(request, BoxParameters)["kind"]
        if kind == "disputed":
            require_role(request.user, Role.REVIEWER)
        if problem := box_problem(request.user, query):
            raise PermissionDenied(problem)
        count, tasks = BoxWork(query).tasks(request.user, kind, first=TASKS_GIVEN)
        return Response(BoxTasksSerializer({"count": count, "results": tasks}).data)
