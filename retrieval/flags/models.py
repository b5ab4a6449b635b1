"""Flags on images."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from retrieval.corpus.models import Image


class ImageFlag(models.Model):
    """A problem with an image for a reviewer to decide on, independent of any query."""

    class Kind(models.TextChoices):
        """What is wrong with the image."""

        PERSON = "person", "Person or face"
        PERSONAL_DATA = "personal_data", "Personal data"
        NO_ORGANISM = "no_organism", "No organism"
        NOT_A_PHOTO = "not_a_photo", "Spectrogram or drawing"
        WRONG_SPECIES = "wrong_species", "Wrong species"
        POOR_QUALITY = "poor_quality", "Poor quality"
        DUPLICATE = "duplicate", "Duplicate"

    class State(models.TextChoices):
        """Open, or a reviewer's decision."""

        OPEN = "open", "Open"
        UPHELD = "upheld", "Image withdrawn"
        CLEARED = "cleared", "Cleared"

    image = models.ForeignKey(Image, on_delete=models.CASCADE, related_name="flags")
    kind = models.CharField(max_length=20, choices=Kind)
    note = models.CharField(max_length=1000, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.OPEN)
    raised_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    raised_at = models.DateTimeField(auto_now_add=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            # A person has one open flag of a kind on an image.
            models.UniqueConstraint(
                fields=["image", "kind", "raised_by"],
                condition=models.Q(state="open"),
                name="image_flag_open_once",
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["open", "upheld", "cleared"]),
                name="image_flag_state_known",
            ),
            models.CheckConstraint(
                condition=models.Q(state="open", decided_at__isnull=True)
                | (~models.Q(state="open") & models.Q(decided_at__isnull=False)),
                name="image_flag_decided_whole",
            ),
        ]
        indexes = [
            # The reviewer's page, and the flagged images of a list.
            models.Index(fields=["image"], condition=models.Q(state="open"), name="image_flag_open")
        ]

    def __str__(self) -> str:
        return f"{self.image_id}: {self.kind} ({self.state})"
