"""Groups of images that show nearly the same, and what a reviewer decided on them."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class DuplicateGroup(models.Model):
    """Images of one species that are copies of each other, or of one burst."""

    class Kind(models.TextChoices):
        COPY = "copy", "Copies"
        BURST = "burst", "A burst"

    class Decision(models.TextChoices):
        KEPT = "kept", "All kept"
        ONE = "one", "One kept"
        WITHDRAWN = "withdrawn", "All withdrawn"

    kind = models.CharField(max_length=10, choices=Kind)
    images = models.ManyToManyField("retrieval.Image", related_name="duplicate_groups")
    found_at = models.DateTimeField(auto_now_add=True)
    decision = models.CharField(max_length=10, choices=Decision, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(
                fields=["id"], condition=models.Q(decision=""), name="duplicate_group_undecided"
            )
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.pk}"
