"""Embedding models, embeddings, vectors of texts, and their bookkeeping."""

from __future__ import annotations

from typing import Final

from django.contrib.postgres.functions import RandomUUID
from django.db import models
from pgvector.django import HalfVectorField

from core.jobs.models import Job
from retrieval.corpus.models import Image

LARGEST_DIMENSION: Final = 4000
"""A halfvec kept inline must fit a page: exact scans must not go through TOAST."""


class EmbeddingModel(models.Model):
    """An open_clip model with its weights, named as `retrieval.encoding.encoders` loads it."""

    name = models.CharField(max_length=300, unique=True, help_text="for example ViT-B-32/openai")
    dimension = models.PositiveIntegerField()
    precision = models.CharField(max_length=10, default="fp32")
    parameters = models.PositiveBigIntegerField(
        null=True, help_text="of image and text side together; empty until its text side is loaded"
    )
    image_flops = models.PositiveBigIntegerField(
        null=True, help_text="floating-point operations for one image; empty until counted"
    )
    text_flops = models.PositiveBigIntegerField(
        null=True, help_text="and for one text; empty where they can't be counted"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    seconds_per_image = models.FloatField(
        null=True, help_text="to embed one on the machine that measured it; empty until measured"
    )
    in_use = models.BooleanField(
        default=False,
        db_default=False,
        help_text="it orders new candidate lists and answers searches; at most one model",
    )
    identity = models.UUIDField(
        unique=True,
        editable=False,
        db_default=RandomUUID(),
        help_text="the same in every copy of this database, and in no other",
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(dimension__range=(1, LARGEST_DIMENSION)),
                name="embedding_model_dimension",
            ),
            models.UniqueConstraint(
                fields=["in_use"], condition=models.Q(in_use=True), name="one_model_in_use"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def millions_of_parameters(self) -> float | None:
        """How many numbers the model has learned, in millions; None before a text was encoded."""
        return None if self.parameters is None else self.parameters / 1e6

    @property
    def image_gflops(self) -> float | None:
        """Billions of operations for one image; None before they are counted."""
        return None if self.image_flops is None else self.image_flops / 1e9

    @property
    def text_gflops(self) -> float | None:
        """Billions of operations for one text; None where they aren't counted."""
        return None if self.text_flops is None else self.text_flops / 1e9


class Embedding(models.Model):
    """One unit-length vector of one image under one model.

    The table is partitioned by model (`embedding_model_get_or_create` makes the partition), so that
    an exact scan reads the vectors of one model only, stored plain and outside TOAST. Rows come and
    go, but never change: a trigger refuses that.
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


class TextVector(models.Model):
    """The unit-length vector of one text under one model; without a vector, a request for it.

    Written by `retrieval.embedding.text_vectors`.
    """

    model = models.ForeignKey(EmbeddingModel, on_delete=models.CASCADE, related_name="text_vectors")
    text = models.TextField()
    digest = models.BinaryField(max_length=32, help_text="SHA-256 of the text in UTF-8")
    vector = HalfVectorField(null=True)
    unread = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="the text's end that the model doesn't read; empty where it reads all",
    )
    error = models.TextField(blank=True, help_text="why there is no vector")
    asked_at = models.DateTimeField(help_text="when it was last requested")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["model", "digest"], name="text_vector_once"),
        ]
        indexes = [
            models.Index(
                fields=["asked_at"],
                condition=models.Q(vector=None, error=""),
                name="text_vector_wanted",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model_id}: {self.text}"


class EmbeddingCount(models.Model):
    """How many embeddings a model has, with a fingerprint of which; triggers keep both.

    A model that never had any may have no row.
    """

    model = models.OneToOneField(
        EmbeddingModel, on_delete=models.CASCADE, primary_key=True, related_name="count"
    )
    embedded = models.PositiveBigIntegerField(default=0)
    fingerprint = models.DecimalField(
        max_digits=40,
        decimal_places=0,
        default=0,
        help_text="the sum of retrieval_embedding_mark over the model's embeddings",
    )

    def __str__(self) -> str:
        return f"{self.model_id}: {self.embedded}"


class EmbeddingRemoval(models.Model):
    """An embedding that was deleted; a trigger writes it, so that packed copies learn of it."""

    # Without a constraint: the embeddings of a model that is deleted leave with it.
    model = models.ForeignKey(
        EmbeddingModel,
        on_delete=models.CASCADE,
        related_name="removals",
        db_constraint=False,
        db_index=False,
    )
    image_id = models.BigIntegerField()
    embedded_at = models.DateTimeField(help_text="its created_at")
    xid = models.BigIntegerField(help_text="the transaction that removed it")

    class Meta:
        indexes = [models.Index(fields=["model", "xid"], name="embedding_removal_xid")]

    def __str__(self) -> str:
        return f"{self.model_id}/{self.image_id}"


class EmbeddingRange(models.Model):
    """Images of an embedding job, by the range of their ids, that one worker has at a time.

    The worker holds a session advisory lock of the range's key, which ends with the worker. A range
    whose lock is free was left, and the next worker takes it over. It is deleted when its images
    are done.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="embedding_ranges")
    first_image = models.BigIntegerField(help_text="the lowest image id, included")
    last_image = models.BigIntegerField(help_text="the highest image id, included")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(first_image__lte=models.F("last_image")),
                name="embedding_range_order",
            ),
        ]

    def __str__(self) -> str:
        return f"images {self.first_image} to {self.last_image} of job {self.job_id}"


class WorkerMachine(models.Model):
    """A machine on which workers run; `retrieval.embedding.machines` writes what they found."""

    name = models.CharField(max_length=200, unique=True)
    has_gpu = models.BooleanField()
    hub_problem = models.CharField(
        max_length=500, blank=True, help_text="why it doesn't reach the hub; empty where it does"
    )
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
