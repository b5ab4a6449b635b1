from __future__ import annotations

from django.conf import settings
from django.db import models

from labeling.models.query import Query
from retrieval.models import Image


class QueryExample(models.Model):
    """An image that an admin pinned to a query's guidelines, as relevant or not relevant."""

    # No index of its own: the unique constraint begins with it.
    query = models.ForeignKey(
        Query, on_delete=models.CASCADE, related_name="examples", db_index=False
    )
    image = models.ForeignKey(Image, on_delete=models.CASCADE, related_name="+")
    relevant = models.BooleanField()
    note = models.CharField(max_length=500, blank=True, help_text="why, for annotators")
    pinned_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    pinned_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-relevant", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["query", "image"], name="query_example_once"),
        ]

    def __str__(self) -> str:
        return f"{self.query_id}: {self.image_id} is {'' if self.relevant else 'not '}relevant"
