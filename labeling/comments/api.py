"""The API of comments."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.fields import IdField, TextField, TruthField
from core.api.parameters import parameters, validated
from labeling.comments.models import LONGEST_COMMENT, Comment
from labeling.comments.selectors import comments_for
from labeling.comments.services import comment_add, thread_opened, thread_resolve
from labeling.judging.access import get_query_for
from labeling.queries.models import Query


class ThreadParameters(serializers.Serializer[Any]):
    """Which thread: without an image, the query's own."""

    image = IdField(required=False)


class CommentWriteSerializer(serializers.Serializer[Any]):
    """A comment to store."""

    image = IdField(allow_null=True, default=None, help_text="null: on the query itself")
    text = TextField(max_length=LONGEST_COMMENT, help_text="@name mentions a person")
    client_id = serializers.UUIDField(help_text="made by the client; a repeat is stored once")


class ThreadStateSerializer(serializers.Serializer[Any]):
    """Whether a thread is resolved."""

    image = IdField(allow_null=True, default=None, help_text="null: the query's own thread")
    resolved = TruthField()


class CommentSerializer(serializers.ModelSerializer[Comment]):
    """One comment."""

    author = serializers.CharField(source="author.username")
    own = serializers.SerializerMethodField()

    class Meta:
        model = Comment
        fields = ("id", "author", "own", "text", "made_at")

    def get_own(self, comment: Comment) -> bool:
        """Whether the user wrote it."""
        return bool(comment.author_id == self.context["user"].pk)


class ThreadSerializer(serializers.Serializer[Any]):
    """The comments on a query or on an image, the oldest first."""

    image = serializers.IntegerField(allow_null=True)
    hidden = serializers.BooleanField(
        help_text="others' comments are hidden until your own judgment of the image is stored"
    )
    resolved_by = serializers.CharField(allow_null=True, help_text="a name")
    resolved_at = serializers.DateTimeField(allow_null=True)
    results = CommentSerializer(many=True)


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
