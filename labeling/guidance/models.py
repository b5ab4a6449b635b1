"""The page "How to label", and people's progress with the introduction."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class HowToLabel(models.Model):
    """The text of the page "How to label": one row, or none while it is the default."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    text = models.TextField(
        blank=True,
        max_length=20_000,
        help_text="Markdown works, and ![caption](image:12345) shows the image of the corpus with "
        "that id. Each person’s own keys follow the text. Leave it empty for the default text.",
    )
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="how_to_label_one")]

    def __str__(self) -> str:
        return "how to label"


class Introduction(models.Model):
    """When a person closed "How to label" on the dashboard, and their last practice's score."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    closed_at = models.DateTimeField(null=True, help_text="or finished a practice before")
    practiced_at = models.DateTimeField(null=True)
    images = models.PositiveSmallIntegerField(default=0)
    right = models.PositiveSmallIntegerField(
        default=0, help_text="answers that the label agrees with"
    )

    def __str__(self) -> str:
        return f"introduction of {self.user_id}"
