"""Releases: what was exported, when, and the files' checksums."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models

from retrieval.models import Job


class Release(models.Model):
    """A snapshot of the completed queries and their consensus, in files under
    VAR_DIR/releases/<id>/.

    Once `made_at` is set, a trigger of the database refuses every change of the row.
    """

    name = models.CharField(max_length=100, unique=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="empty where a command made it",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    job = models.OneToOneField(
        Job,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="release",
        help_text="that makes it; empty where a command made it",
    )
    made_at = models.DateTimeField(null=True, blank=True, help_text="empty until it is made")
    val_queries = models.PositiveIntegerField(default=0)
    test_queries = models.PositiveIntegerField(default=0)
    positives = models.PositiveBigIntegerField(default=0, help_text="relevant pairs")
    judgments = models.PositiveBigIntegerField(default=0, help_text="single judgments")
    file_list = models.JSONField(
        default=list, blank=True, help_text="name, size in bytes and SHA-256 of each file"
    )

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(condition=~models.Q(name=""), name="release_name_not_blank"),
            models.CheckConstraint(
                condition=models.Q(made_at__isnull=True) | ~models.Q(file_list=[]),
                name="release_made_with_files",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def files_ready(self) -> bool:
        return self.made_at is not None

    @property
    def state(self) -> str:
        """ "done" once it is made, else the state of its job; "failed" where nothing works on
        it."""
        if self.files_ready:
            return Job.State.DONE
        if self.job is None or self.job.state == Job.State.DONE:
            return Job.State.FAILED
        return self.job.state

    @property
    def directory(self) -> Path:
        """Where its files are once it is made."""
        return Path(settings.VAR_DIR) / "releases" / str(self.pk)
