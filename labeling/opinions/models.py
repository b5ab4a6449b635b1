"""What people judge blindly: labels of others, checks whose answer is known, and images that runs
request.
"""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinLengthValidator
from django.db import models

from labeling.audits.draws import KEY_BYTES
from labeling.judging.models import Relevance
from labeling.queries.models import Query
from retrieval.corpus.models import Image


class OpinionKey(models.Model):
    """The secret by which a query's second opinions are chosen, made when it opens and shown to
    nobody: who knows it can tell which labels nobody will look at again.
    """

    query = models.OneToOneField(
        Query, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    key = models.BinaryField(
        max_length=KEY_BYTES, validators=[MinLengthValidator(KEY_BYTES)], editable=False
    )
    made_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"opinion key of query {self.query_id}"


class Opinion(models.Model):
    """An image of a query that is judged blindly: by anybody but the person who labeled it alone,
    or as a check by one person who never judged it. Only `displayed_at` changes, once.
    """

    # No index of its own: the unique constraints begin with it.
    query = models.ForeignKey(
        Query, on_delete=models.CASCADE, related_name="opinions", db_index=False
    )
    image = models.ForeignKey(Image, on_delete=models.PROTECT, related_name="+")
    relevance = models.CharField(
        max_length=12, choices=Relevance, help_text="the first label; a check's answer"
    )
    first_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="who gave the first label; empty for a check",
    )
    check_for = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="whom it checks; empty for a second opinion",
    )
    probability = models.FloatField(
        null=True, help_text="with which the hash chose it; empty where it didn't"
    )
    boundary = models.BooleanField(help_text="chosen for its score")
    place = models.BigIntegerField(help_text="random: people see them in this order")
    drawn_at = models.DateTimeField(auto_now_add=True)
    displayed_at = models.DateTimeField(null=True, help_text="to anybody; empty before")

    class Meta:
        ordering = ["query", "place", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["query", "image"],
                condition=models.Q(check_for=None),
                name="opinion_image_once",
            ),
            models.UniqueConstraint(
                fields=["query", "image", "check_for"], name="opinion_check_once"
            ),
            models.CheckConstraint(
                condition=models.Q(first_by=None) ^ models.Q(check_for=None),
                name="opinion_second_or_check",
            ),
        ]

    def __str__(self) -> str:
        return (
            f"{self.query_id}/{self.image_id}: {'second opinion' if self.first_by_id else 'check'}"
        )


class RequestedImage(models.Model):
    """An image of a query that a run ranks high and nobody has judged: anybody judges it, without
    knowing of the run. Only `displayed_at` changes, once.
    """

    # No index of its own: the unique constraint begins with it.
    query = models.ForeignKey(
        Query, on_delete=models.CASCADE, related_name="requested_images", db_index=False
    )
    image = models.ForeignKey(Image, on_delete=models.PROTECT, related_name="+")
    requested_for = models.CharField(
        max_length=300, help_text="the first run that it was requested for; hidden from annotators"
    )
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    requested_at = models.DateTimeField(auto_now_add=True)
    place = models.BigIntegerField(help_text="random: people see them in this order")
    displayed_at = models.DateTimeField(null=True, help_text="to anybody; empty before")

    class Meta:
        ordering = ["query", "place", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["query", "image"], name="requested_image_once"),
        ]

    def __str__(self) -> str:
        return f"{self.query_id}/{self.image_id}: requested"


class MarkedCheck(models.Model):
    """An image that a reviewer, who has decided it, wants people to be checked with."""

    # No index of its own: the unique constraint begins with it.
    query = models.ForeignKey(
        Query, on_delete=models.CASCADE, related_name="marked_checks", db_index=False
    )
    image = models.ForeignKey(Image, on_delete=models.CASCADE, related_name="+")
    marked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    marked_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["query", "image"], name="marked_check_once"),
        ]

    def __str__(self) -> str:
        return f"{self.query_id}: {self.image_id} is a check"
