from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from labeling.models.query import Query


class Assignment(models.Model):
    """A person's part in a query that they have handed in.

    Until then, whoever has judged for the query takes part without a row; who takes the part up
    again, and everybody when the query is opened again, loses theirs.
    """

    class Rule(models.TextChoices):
        STREAK = "streak", "Stop rule met"
        EXHAUSTED = "exhausted", "List exhausted"

    query = models.ForeignKey(
        Query, on_delete=models.CASCADE, related_name="assignments", db_index=False
    )
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="assignments"
    )
    handed_in_at = models.DateTimeField(default=timezone.now)
    rule = models.CharField(
        max_length=10, choices=Rule, blank=True, help_text="that was met; empty for none"
    )
    reason = models.CharField(
        max_length=20,
        choices=Query.RejectReason,
        blank=True,
        help_text="why the person gave the query up; empty where they didn't",
    )
    note = models.TextField(blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["query", "annotator"], name="assignment_once_per_annotator"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.query_id}/{self.annotator_id}: handed in"
