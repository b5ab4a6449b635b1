"""Comments as the API takes and answers them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from core.api.fields import IdField, TextField, TruthField
from labeling.comments.models import LONGEST_COMMENT, Comment


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
