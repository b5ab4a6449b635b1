"""What second opinions are chosen by, and what people are checked with."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinLengthValidator
from django.db import models

from labeling.audits.draws import KEY_BYTES
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
