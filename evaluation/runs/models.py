"""Runs: rankings by some method, what is known of the method, and their scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models

from core.jobs.models import Job
from core.storage import local_file
from releases.models import Release
from retrieval.embedding.models import EmbeddingModel


class Run(models.Model):
    """A ranking of images for the queries of a release by some method.

    The ranking itself is in VAR_DIR/runs/<id>.npz (`evaluation.runs.store`), and a submitted file
    beside it until it is read; a random order has none, since its scores are exact expectations.
    """

    class Task(models.TextChoices):
        """What is ranked: the corpus, or the fixed list of each query."""

        FULL = "full", "Full ranking"
        RERANK = "rerank", "Re-ranking of the fixed top 100"

    class Kind(models.TextChoices):
        """How the ranking was made."""

        UPLOAD = "upload", "Submitted"
        MODEL = "model", "Embedding model"
        RANDOM = "random", "Random order"
        BEST = "best", "Best possible re-rank"
        FUSION = "fusion", "Fusion of runs"
        RERANK_EMBEDDING = "rerank_embedding", "Re-ranked by an embedding model"
        RERANK_MULTIMODAL = "rerank_multimodal", "Re-ranked by a multimodal model"

    class Tuning(models.TextChoices):
        """Whether a model saw labels of the benchmark's kind before."""

        ZERO_SHOT = "zero_shot", "Zero-shot"
        TUNED = "tuned", "Tuned for the task"

    #: Made here for every release, not by a person: public from the start.
    BASELINES = (Kind.MODEL, Kind.RANDOM, Kind.BEST)

    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="runs")
    task = models.CharField(max_length=10, choices=Task, default=Task.FULL)
    kind = models.CharField(max_length=20, choices=Kind, default=Kind.UPLOAD)
    name = models.CharField(max_length=150, help_text="the method's name")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="runs",
        help_text="empty where a command or the application made it",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    published_at = models.DateTimeField(null=True, blank=True, help_text="empty while private")
    job = models.OneToOneField(
        Job,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="run",
        help_text="the job that makes or scores it",
    )

    # The method card.
    link = models.URLField(max_length=500, blank=True)
    code = models.URLField(max_length=500, blank=True, help_text="where the code is")
    description = models.TextField(blank=True)
    parameters = models.FloatField(null=True, blank=True, help_text="millions of parameters")
    training_data = models.CharField(max_length=300, blank=True)
    tuning = models.CharField(
        max_length=10, choices=Tuning, blank=True, help_text="empty: not stated"
    )
    open_weights = models.BooleanField(null=True, blank=True, help_text="empty: not stated")
    cost = models.FloatField(
        null=True, blank=True, help_text="US dollars for the whole run; empty: not stated"
    )

    # How the application made it.
    embedding_model = models.ForeignKey(
        EmbeddingModel, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    first_stage = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="second_stages"
    )
    rerank_depth = models.PositiveIntegerField(
        null=True, blank=True, help_text="how many of the first stage's images were re-ranked"
    )
    endpoint = models.JSONField(
        default=dict, blank=True, help_text="of a multimodal model: address, model, prices …"
    )

    # What is in it; 0 until it is ready.
    val_queries = models.PositiveIntegerField(default=0)
    test_queries = models.PositiveIntegerField(default=0)
    rows = models.PositiveBigIntegerField(default=0)
    depth = models.PositiveIntegerField(default=0, help_text="most images of one query")
    sha256 = models.CharField(max_length=64, blank=True, help_text="of the stored ranking")
    ready_at = models.DateTimeField(null=True, blank=True, help_text="empty until it is scored")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(condition=~models.Q(name=""), name="run_name_not_blank"),
            models.CheckConstraint(
                condition=models.Q(kind="best", first_stage__isnull=False)
                | models.Q(kind__startswith="rerank_", first_stage__isnull=False)
                # What is re-ranked there are the release's fixed lists.
                | models.Q(kind__startswith="rerank_", task="rerank")
                | models.Q(
                    kind__in=["upload", "model", "random", "fusion"], first_stage__isnull=True
                ),
                name="run_first_stage_where_needed",
            ),
            models.CheckConstraint(
                condition=models.Q(parameters__isnull=True) | models.Q(parameters__range=(0, 1e9)),
                name="run_parameters",
            ),
            models.CheckConstraint(
                condition=models.Q(cost__isnull=True) | models.Q(cost__range=(0, 1e9)),
                name="run_cost",
            ),
            # Baselines are made once for a release, however often they are requested.
            models.UniqueConstraint(
                fields=["release", "task", "kind"],
                condition=models.Q(kind="random"),
                name="run_random_once",
            ),
            models.UniqueConstraint(
                fields=["release", "task", "kind", "first_stage", "rerank_depth"],
                condition=models.Q(kind="best"),
                name="run_best_once",
            ),
            models.UniqueConstraint(
                fields=["release", "task", "kind", "embedding_model"],
                condition=models.Q(kind="model"),
                name="run_model_once",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def ready(self) -> bool:
        """Whether it is scored."""
        return self.ready_at is not None

    @property
    def is_baseline(self) -> bool:
        """Whether it is made here for every release rather than by a person."""
        return self.kind in self.BASELINES

    @property
    def published(self) -> bool:
        """Whether everybody who may see the release sees it."""
        return self.published_at is not None

    @property
    def path(self) -> Path:
        """Where its ranking is once it is ready."""
        return Path(settings.VAR_DIR) / "runs" / f"{self.pk}.npz"

    @property
    def local_path(self) -> Path:
        """Where its ranking can be mapped on this machine. Raises StorageAway."""
        return local_file(self.path, self.sha256)

    @property
    def upload(self) -> Path:
        """Where the submitted file is until a job has read it."""
        return self.path.with_suffix(".upload")

    @property
    def refused(self) -> list[dict[str, Any]]:
        """Why the submitted file was refused: file, line, field and message of each error."""
        errors: list[dict[str, Any]] = self.job.result.get("errors", []) if self.job else []
        return errors


class RunScores(models.Model):
    """A run's scores on a release, which may be another version than the one it was made for."""

    # No index of its own: the constraint begins with it.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="scores", db_index=False)
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="scores")
    query_ids = models.JSONField(help_text="the scored queries, ascending")
    measures = models.JSONField(help_text='"AP@50" and so on -> one value for each of `query_ids`')
    made_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "run scores"
        constraints = [
            models.UniqueConstraint(fields=["run", "release"], name="run_scores_once"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id} on {self.release_id}"


class Submission(models.Model):
    """An accepted upload, for the daily limit; it stays when its run is deleted."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="+")
    run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True, related_name="+")
    test_split = models.BooleanField(help_text="whether it held queries of the test split")
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["person", "-made_at"], name="submission_person_day")]

    def __str__(self) -> str:
        return f"{self.person_id} at {self.made_at:%Y-%m-%d %H:%M}"
