"""Users, workers' heartbeats and backups."""

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models.functions import Now

from core.access import Role


class User(AbstractUser):
    """A person with one role: researchers evaluate runs, annotators label, reviewers judge labels,
    admins do the rest.
    """

    role = models.CharField(max_length=16, choices=Role.choices, default=Role.ANNOTATOR)

    class Meta(AbstractUser.Meta):
        constraints = [
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="user_role_known")
        ]


class WorkerHeartbeat(models.Model):
    """When a Celery worker process was last alive, by the database's clock."""

    worker = models.CharField(max_length=255, unique=True)
    seen_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.worker} seen {self.seen_at:%Y-%m-%d %H:%M:%S}"


class Backup(models.Model):
    """A backup that was begun, with what became of it."""

    file = models.CharField(max_length=1000, help_text="where it was written")
    daily = models.BooleanField(default=False)
    images = models.BooleanField(default=True, help_text="whether it holds the images' files")
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True, help_text="empty: not whole")
    size_bytes = models.PositiveBigIntegerField(default=0)
    problem = models.TextField(blank=True, help_text="why it failed, or which files were missing")

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.file
