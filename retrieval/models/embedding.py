from __future__ import annotations

from django.db import models
from pgvector.django import HalfVectorField

from retrieval.models.image import Image


class EmbeddingModel(models.Model):
    """An open_clip model with its weights, named as `retrieval.encoders` loads it."""

    name = models.CharField(max_length=300, unique=True, help_text="for example ViT-B-32/openai")
    dimension = models.PositiveIntegerField()
    precision = models.CharField(max_length=10, default="fp32")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            # A halfvec kept inline must fit a page: exact scans must not go through TOAST.
            models.CheckConstraint(
                condition=models.Q(dimension__range=(1, 4000)), name="embedding_model_dimension"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Embedding(models.Model):
    """One unit-length vector of one image under one model.

    The table is partitioned by model (`embedding_model_get_or_create` makes the partition), so that
    an exact scan reads the vectors of one model only, stored plain and outside TOAST.
    """

    pk = models.CompositePrimaryKey("model_id", "image_id")
    model = models.ForeignKey(EmbeddingModel, on_delete=models.CASCADE, related_name="embeddings")
    image = models.ForeignKey(Image, on_delete=models.CASCADE, related_name="embeddings")
    vector = HalfVectorField()
    created_at = models.DateTimeField(
        help_text="when it was stored; a candidate list takes none later"
    )

    def __str__(self) -> str:
        return f"{self.model_id}/{self.image_id}"
