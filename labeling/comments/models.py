"""Threads of comments, and who was mentioned in them."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.db import models

from labeling.queries.models import Query
from retrieval.corpus.models import Image

LONGEST_COMMENT: Final = 5000


class Thread(models.Model):
    """The comments on a query, or on an image for a query; open until somebody resolves it."""

    # No index of its own: the unique constraint begins with it.
    query = models.ForeignKey(
        Query, on_delete=models.CASCADE, related_name="threads", db_index=False
    )
    image = models.ForeignKey(
        Image,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="empty for the comments on the query itself",
    )
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    resolved_at = models.DateTimeField(null=True, help_text="empty while it is open")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["query", "image"], name="thread_once", nulls_distinct=False
            ),
            models.CheckConstraint(
                condition=models.Q(resolved_by=None, resolved_at=None)
                | models.Q(resolved_by__isnull=False, resolved_at__isnull=False),
                name="thread_resolved_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"comments on {self.query_id}/{self.image_id or 'query'}"


class Comment(models.Model):
    """What somebody wrote; never changed, but for the name of a mentioned person who leaves."""

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="comments")
    # No index of its own: the unique constraint begins with it.
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    client_id = models.UUIDField(help_text="made by the client, so that a repeat counts once")
    text = models.TextField(max_length=LONGEST_COMMENT)
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["author", "client_id"], name="comment_client_once"),
            models.CheckConstraint(condition=~models.Q(text=""), name="comment_not_blank"),
        ]

    def __str__(self) -> str:
        return f"comment {self.pk} in thread {self.thread_id}"


class Mention(models.Model):
    """A person who was mentioned in a thread and hasn't opened it since."""

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="mentions")
    # No index of its own: the unique constraint begins with it.
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    comment = models.ForeignKey(
        Comment, on_delete=models.CASCADE, related_name="+", help_text="the latest that names them"
    )

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["person", "thread"], name="mention_once"),
        ]

    def __str__(self) -> str:
        return f"{self.person_id} is mentioned in thread {self.thread_id}"
