"""The shards of models' matrices."""

from __future__ import annotations

from django.db import models

from retrieval.embedding.models import EmbeddingModel


class RankingShard(models.Model):
    """A range of image ids whose embeddings under a model are one packed matrix.

    A process that `hold_shards` started holds a session advisory lock of its key, which ends with
    the process. Written by `extras.sharding.holding`.
    """

    model = models.ForeignKey(EmbeddingModel, on_delete=models.CASCADE, related_name="shards")
    first_image = models.BigIntegerField(help_text="the lowest image id, included")
    last_image = models.BigIntegerField(help_text="the highest image id, included")
    worker = models.CharField(
        max_length=200, blank=True, help_text="the process that ranks it, or was the last to"
    )
    place = models.CharField(
        max_length=32, blank=True, help_text="the state folder that has its files"
    )
    rows = models.PositiveBigIntegerField(default=0, help_text="embeddings when it was packed")
    since = models.DateTimeField(null=True, help_text="when the process began to rank it")
    rebuild_requests = models.PositiveIntegerField(
        default=0, help_text="how often it was asked to pack the files anew, until that begins"
    )

    class Meta:
        ordering = ["model_id", "first_image"]
        constraints = [
            models.UniqueConstraint(
                fields=["model", "first_image", "last_image"], name="ranking_shard_once"
            ),
            models.CheckConstraint(
                condition=models.Q(first_image__lte=models.F("last_image")),
                name="ranking_shard_order",
            ),
        ]

    def __str__(self) -> str:
        return f"images {self.first_image}-{self.last_image}"
