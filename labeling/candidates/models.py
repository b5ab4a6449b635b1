"""Candidate lists and their candidates."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from pgvector.django import HalfVectorField

from core.jobs.models import Job
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from retrieval.embedding.models import EmbeddingModel


class CandidateList(models.Model):
    """The frozen, exact order of images for (query text, model, species filter).

    It holds all that is needed to compute it again bit for bit: the text's vector as it was used,
    and the moment after which no embedding was taken in.
    """

    query = models.ForeignKey(Query, on_delete=models.CASCADE, related_name="lists")
    model_name = models.CharField(max_length=300, help_text="name of the requested embedding model")
    embedding_model = models.ForeignKey(
        EmbeddingModel,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="empty until it is ready: only the worker loads the model",
    )
    text = models.CharField(max_length=500)
    species_ids = ArrayField(
        models.BigIntegerField(), default=list, help_text="sorted; empty for the whole corpus"
    )
    depth = models.PositiveIntegerField(help_text="how many candidates were requested")
    size = models.PositiveIntegerField(default=0, help_text="how many it holds")
    total = models.PositiveBigIntegerField(
        default=0, help_text="embedded images within the filter when it was frozen"
    )
    unembedded = models.PositiveBigIntegerField(
        default=0, help_text="images within the filter that had no embedding yet"
    )
    text_vector = HalfVectorField(null=True)
    frozen_at = models.DateTimeField(null=True, help_text="empty until it is ready")
    checksum = models.CharField(
        max_length=64, blank=True, help_text="SHA-256 over image ids and scores in order"
    )
    job = models.ForeignKey(
        Job,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="the job that last worked on it",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(frozen_at__isnull=True, size=0)
                | models.Q(
                    frozen_at__isnull=False,
                    embedding_model__isnull=False,
                    text_vector__isnull=False,
                    checksum__gt="",
                ),
                name="candidate_list_frozen_whole",
            ),
            models.CheckConstraint(
                condition=models.Q(size__lte=models.F("total")), name="candidate_list_size_in_total"
            ),
        ]

    def __str__(self) -> str:
        return f"list {self.pk} of query {self.query_id}"

    @property
    def ready(self) -> bool:
        """Whether it was frozen."""
        return self.frozen_at is not None

    @property
    def complete(self) -> bool:
        """Whether it holds every image of its filter: labeling it all exhausts the filter."""
        return self.ready and self.size == self.total and self.unembedded == 0


class Candidate(models.Model):
    """One image at its rank (from 1) in a list, with its cosine similarity to the text."""

    # No index of its own: both unique constraints begin with it.
    list = models.ForeignKey(
        CandidateList, on_delete=models.CASCADE, related_name="candidates", db_index=False
    )
    rank = models.PositiveIntegerField()
    image = models.ForeignKey(Image, on_delete=models.CASCADE, related_name="+")
    score = models.FloatField()

    class Meta:
        ordering = ["list", "rank"]
        constraints = [
            models.UniqueConstraint(fields=["list", "rank"], name="candidate_rank_unique"),
            models.UniqueConstraint(fields=["list", "image"], name="candidate_image_unique"),
            models.CheckConstraint(condition=models.Q(rank__gte=1), name="candidate_rank_from_1"),
        ]

    def __str__(self) -> str:
        return f"{self.list_id}#{self.rank}: {self.image_id}"
