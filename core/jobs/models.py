"""Jobs: long work that workers do."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from core.locks import is_locked, lock_key


class Job(models.Model):
    """Long work with its parameters and progress.

    Celery messages only name a job to work on; losing a message loses no work.
    """

    class State(models.TextChoices):
        """Where a job is on its way."""

        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"
        CANCELED = "canceled", "Canceled"

    UNFINISHED = (State.QUEUED, State.RUNNING)

    kind = models.CharField(max_length=50)
    title = models.CharField(max_length=300, blank=True)
    params = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    done = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(null=True, blank=True)
    result = models.JSONField(default=dict)
    cursor = models.JSONField(
        default=dict, help_text="where the next slice goes on; only the kind's handler reads it"
    )
    turn = models.PositiveBigIntegerField(
        default=0, help_text="slices begun; a message that names an earlier turn is stale"
    )
    attempts_without_progress = models.PositiveIntegerField(
        default=0, help_text="slices begun since the last that ended or made progress"
    )
    error = models.TextField(blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField(auto_now=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    active_seconds = models.FloatField(
        default=0, help_text="time spent working in slices that ended, without waits"
    )
    working_since = models.DateTimeField(
        null=True, blank=True, help_text="when the slice at work began; empty while none is"
    )

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["queued", "running", "done", "failed", "canceled"]),
                name="job_state_known",
            ),
        ]
        indexes = [
            # The sweep selects unfinished jobs every few seconds.
            models.Index(
                fields=["id"],
                condition=models.Q(state__in=["queued", "running"]),
                name="job_unfinished",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk} ({self.state})"

    @property
    def working_seconds(self) -> float:
        """How long workers have worked on it, up to now, without waits."""
        since = self.working_since
        # A worker that was killed has left its moment, and not its lock.
        if since is None or not is_locked(lock_key("job", self.pk)):
            return self.active_seconds
        return self.active_seconds + max(0.0, (timezone.now() - since).total_seconds())

    @property
    def rate(self) -> float | None:
        """Items per second of working time."""
        seconds = self.working_seconds
        return (self.done + self.failed) / seconds if seconds else None

    @property
    def percent(self) -> int | None:
        """Progress from 0 to 100, or None while the total is unknown."""
        if self.total is None:
            return None
        return 100 if not self.total else min(100, (self.done + self.failed) * 100 // self.total)


class JobItemError(models.Model):
    """An item that a job could not process, and the reason."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="item_errors")
    image_id = models.BigIntegerField(
        null=True,
        blank=True,
        db_index=True,
        help_text="the image id, where the item is an image",
    )
    item = models.CharField(max_length=500)
    message = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            # A slice that is repeated records a failed item once.
            models.UniqueConstraint(fields=["job", "item"], name="job_item_error_once"),
        ]

    def __str__(self) -> str:
        return f"{self.item}: {self.message}"
