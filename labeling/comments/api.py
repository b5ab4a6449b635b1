"""The API of comments."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.parameters import parameters, validated
from labeling.comments.selectors import comments_for
from labeling.comments.serializers import (
    CommentWriteSerializer,
    ThreadParameters,
    ThreadSerializer,
    ThreadStateSerializer,
)
from labeling.comments.services import comment_add, thread_opened, thread_resolve
from labeling.judging.access import get_query_for
from labeling.queries.models import Query


class CommentActions:
    """Comments on one query and its images; part of the queries' view set."""

    @extend_schema(methods=["get"], parameters=[ThreadParameters], responses=ThreadSerializer)
    @extend_schema(
        methods=["post"],
        request=CommentWriteSerializer,
        responses={
            201: ThreadSerializer,
            200: OpenApiResponse(ThreadSerializer, "the client id was stored before"),
        },
    )
    @action(detail=True, methods=["get", "post"])
    def comments(self, request: Request, pk: int) -> Response:
        """Read the comments on a query or an image, or add one (whoever sees the query).

        Annotators read others' comments on an image once their own judgment of it is stored,
        reviewers except on images that they are to judge blindly. Reading them ends a mention.
        """
        query = get_query_for(request.user, pk)
        if request.method == "GET":
            image_id = parameters(request, ThreadParameters).get("image")
            return _answer(request.user, query, image_id)
        sent = validated(request, CommentWriteSerializer)
        image_id = sent.pop("image")
        new = comment_add(query=query, image_id=image_id, author=request.user, **sent)
        code = status.HTTP_201_CREATED if new else status.HTTP_200_OK
        return _answer(request.user, query, image_id, code)

    @extend_schema(request=ThreadStateSerializer, responses=ThreadSerializer)
    @action(detail=True, methods=["post"], url_path="comments/resolve")
    def comments_resolve(self, request: Request, pk: int) -> Response:
        """Resolve a thread, or reopen it (whoever may read it)."""
        query = get_query_for(request.user, pk)
        sent = validated(request, ThreadStateSerializer)
        thread_resolve(
            query=query, image_id=sent["image"], by=request.user, resolved=sent["resolved"]
        )
        return _answer(request.user, query, sent["image"])


def _answer(
    user: Any, query: Query, image_id: int | None, code: int = status.HTTP_200_OK
) -> Response:
    thread = comments_for(user, query, image_id)
    if not thread["hidden"]:
        thread_opened(query=query, image_id=image_id, by=user)
    return Response(ThreadSerializer(thread, context={"user": user}).data, status=code)
