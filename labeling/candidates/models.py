"""Candidate lists, their candidates, and the rankings that a pooled list fuses."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.postgres.fields import ArrayField
from django.db import models
from pgvector.django import HalfVectorField

from core.jobs.models import Job
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from retrieval.embedding.models import EmbeddingModel


class CandidateList(models.Model):
    """The frozen, exact order of images for (query text, model or models, species filter).

    It holds all that is needed to compute it again bit for bit: the text's vector as it was used,
    and the moment up to which embeddings were included. A pooled list is the fusion of several
    models' rankings (`PoolRanking`); its own model and vector are those of the first model.
    """

    query = models.ForeignKey(Query, on_delete=models.CASCADE, related_name="lists")
    model_name = models.CharField(max_length=300, help_text="name of the requested embedding model")
    pool_models = ArrayField(
        models.CharField(max_length=300),
        default=list,
        help_text="names of the models whose rankings are fused; empty for a list of one",
    )
    added_models = ArrayField(
        models.CharField(max_length=300),
        default=list,
        help_text="models that the previous list didn't have: their unjudged images come first",
    )
    last_event = models.BigIntegerField(
        default=0, help_text="the last judgment event before it was frozen, where models were added"
    )
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
    def model_names(self) -> list[str]:
        """The names of the models that order it."""
        return self.pool_models or [self.model_name]

    @property
    def complete(self) -> bool:
        """Whether it holds every image of its filter: labeling it all exhausts the filter."""
        return self.ready and self.size == self.total and self.unembedded == 0


class Candidate(models.Model):
    """One image at its rank (from 1) in a list, with its cosine similarity to the text. In a pooled
    list the score is the fused one; `PoolRanking` has the models' own.
    """

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


class PoolRanking(models.Model):
    """One model's ranking for a pooled list, to the depth requested of the list; never changed.

    An image's rank under the model is its position in `image_ids`, from 1.
    """

    list = models.ForeignKey(
        CandidateList, on_delete=models.CASCADE, related_name="rankings", db_index=False
    )
    place = models.PositiveSmallIntegerField(help_text="the model's position in the pool, from 1")
    embedding_model = models.ForeignKey(EmbeddingModel, on_delete=models.PROTECT, related_name="+")
    text_vector = HalfVectorField()
    image_ids = ArrayField(models.BigIntegerField(), help_text="best first")
    scores = ArrayField(models.FloatField(), help_text="their cosine similarities to the text")
    checksum = models.CharField(max_length=64, help_text="SHA-256, computed as for a list")

    class Meta:
        ordering = ["list", "place"]
        constraints = [
            models.UniqueConstraint(fields=["list", "place"], name="pool_ranking_place_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.list_id}/{self.place}: {len(self.image_ids)} images"

    @property
    def rows(self) -> Sequence[tuple[int, float]]:
        """(image id, score), best first."""
        return [*zip(self.image_ids, self.scores, strict=True)]
