"""The keys that choose second opinions, and the images that check people."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from labeling.audits.models import QueryKey
from labeling.queries.models import Query
from retrieval.corpus.models import Image


class OpinionKey(QueryKey):
    """Chooses a query's second opinions, made when it opens: who knows it can tell which labels
    nobody will look at again.
    """


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
